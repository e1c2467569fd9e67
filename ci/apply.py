"""Decide which new records hold, and make boards and site, from main's registry and what its plugins declare.

    python -m ci.apply OUT JOB [--site]

It runs in the sandbox, in a tree whose plugins are data (see ``as_data``). JOB has new records, and the cells whose
records are set aside: withdrawn, or of a task that could not be asked. ``OUT/decision.json`` says which records are to
be taken over; ``OUT/registry`` has the boards that follow.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ci.inside import write_json
from neuco_core.errors import NeucoError
from neuco_core.records.model import Key, Record
from neuco_core.records.store import find_record, parse_record, read_all, write_records


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cells whose new records hold, and what there is to say, line by line."""

    kept: tuple[Key, ...]
    lines: tuple[str, ...]


def decide(registry: Path, new: Sequence[Record]) -> Decision:
    """Which records to write. One that exists and is still true is never replaced by an equal one or a failure.

    Equal is what `neuco verify` confirms: a plugin that hid a change of its code does not keep its old score.
    """
    from neuco_core.runs.plan import stale_records
    from neuco_core.runs.verify import compare

    fresh = {record.key: record for record in new}
    stale = stale_records(new)
    lines = [f"left out {method} on {task}: {reason}" for (method, task, _), reason in stale.items()]
    true = [record for record in read_all(registry) if record.key in fresh and record.ok]
    untrue = stale_records(true)
    settled = {record.key: record for record in true if record.key not in untrue}
    kept = []
    for key, record in fresh.items():
        if key in stale:
            continue
        old = settled.get(key)
        same = old is not None and old.fingerprint == record.fingerprint and compare(old, record).confirmed
        if old is not None and (same or not record.ok):
            lines.append(f"unchanged: {record.method} on {record.task}")
            continue
        kept.append(key)
    return Decision(tuple(kept), tuple(lines))


def carry_out(registry: Path, taken: Sequence[Record], gone: Sequence[Key], urls: Sequence[str] = ()) -> None:
    """Pack records; move others out of the way, each as it is. Packs of other methods are not touched."""
    withdrawn = [record for key in gone if (record := find_record(registry, key)) is not None]
    write_records(registry / "withdrawn", withdrawn)
    write_records(registry, taken, gone)


def rebuild(registry: Path, site: Path | None) -> list[str]:
    """Boards, and the site if it is wanted."""
    from neuco_core.boards.build import TooManyCellsError
    from neuco_core.boards.from_registry import current
    from neuco_core.boards.store import write_board

    now = current(registry)
    lines = []
    for suite in now.choose():
        try:
            changes = write_board(registry, now.board(suite))
        except TooManyCellsError as error:  # a living suite grows by itself; it must not hold up the others
            lines.append(f"board {suite.id} is not made: {error}")
            continue
        lines.append(f"board {suite.id}: {'; '.join(changes) if changes else 'unchanged'}")
    if site is not None:
        from neuco_core.boards.views.site.write import write_site
        from neuco_extensions.predict.page import gather_with_estimates

        lines.append(f"site: {write_site(gather_with_estimates(registry), site)} pages")
    return lines


def main(arguments: Sequence[str]) -> int:
    out, job, *options = arguments
    registry = Path(out) / "registry"
    shutil.copytree(Path("registry"), registry)
    os.environ["NEUCO_REGISTRY"] = str(registry)  # this process is for nothing else
    try:
        new = [parse_record(path.read_bytes(), path) for path in sorted((Path(job) / "records").iterdir())]
        aside = msgspec.json.decode((Path(job) / "aside.json").read_bytes(), type=list[Key])
        decision = decide(registry, new)
        carry_out(registry, [record for record in new if record.key in decision.kept], aside)
        lines = rebuild(registry, Path(out) / "site" if "--site" in options else None)
    except NeucoError as error:
        print(f"ci: error: {error}", file=sys.stderr)
        return error.exit_code
    write_json(Path(out) / "decision.json", {"kept": decision.kept, "lines": [*decision.lines, *lines]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
