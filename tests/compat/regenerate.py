"""Run the commands of docs/scoring.md again and put what they print into the page:

python -m tests.compat.regenerate
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

from tests.compat.helpers import neuco

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoring.md"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        fresh = re.sub(r"(?<=```console\n)(.*?)(?=```)", lambda found: _block(found[1]), text, flags=re.S)
    PAGE.write_text(fresh, encoding="utf-8")


def _block(block: str) -> str:
    """The block with new output; an ellipsis at the end, which stands for more lines, stays where it was."""
    parts = []
    for part in block.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        lines = neuco(*shlex.split(command)[1:]).out.splitlines()
        if shown.splitlines()[-1:] == ["…"]:
            lines = [*lines[: len(shown.splitlines()) - 1], "…"]
        parts.append("\n".join([f"$ {command}", *lines]) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    main()
