"""Run the commands of docs/scoring.md again and put what they print into the page:

python -m tests.bench.regenerate
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests import console

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoring.md"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines, commands = text.splitlines(), [step for step in console.steps(text) if not step.python]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PAGE.parents[1] / "registry", Path(folder) / "registry")
        env = {"HOME": folder, "NEUCO_REGISTRY": f"{folder}/registry"}
        texts = [console.run(step, Path(folder), env).stdout.replace(folder, "…") for step in commands]
        printed = [text.splitlines() for text in texts]
    for step, output in reversed(list(zip(commands, printed, strict=True))):  # from the end, so that line numbers hold
        shown = len(step.expected)
        # An ellipsis at the end, which stands for more lines, stays where it is.
        lines[step.line : step.line + shown] = [*output[: shown - 1], "…"] if step.expected[-1:] == ("…",) else output
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
