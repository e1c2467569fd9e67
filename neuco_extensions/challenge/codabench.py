"""What Codabench runs to score a submission: ``python3 -m neuco_extensions.challenge.codabench INPUT OUTPUT PHASE``.

``INPUT/ref`` is the challenge's folder, ``INPUT/res`` has the submitted file. Codabench knows no earlier submission, so
that there is no ladder: scores are rounded, and no more. Quotas and dates are Codabench's own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from neuco_core.env import show_in_debug
from neuco_core.files import write_atomic
from neuco_core.jsonio import dump
from neuco_extensions.challenge.feedback import feedback
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.outcome import MESSAGES


def main(source: Path, target: Path, phase: str) -> int:
    """Write ``scores.json``. A failure is one fixed sentence, since teams may read what a program prints."""
    files = [path for path in sorted((source / "res").iterdir()) if path.is_file() and path.name != "metadata"]
    if len(files) != 1:
        return _fail("format")
    try:
        with Host(source / "ref") as host:
            found = host.evaluate(phase, files[0])
            told, _ = feedback(host.challenge.phase(phase), 0, found.records, None) if found.records else ({}, None)
    except Exception as error:
        show_in_debug(error)  # for hosts, who set NEUCO_DEBUG in the image
        return _fail("failed")
    if not found.outcome.finished:
        return _fail(found.outcome.code)
    write_atomic(target / "scores.json", dump(told))
    return 0


def _fail(code: str) -> int:
    sys.stderr.write(MESSAGES[code] + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
