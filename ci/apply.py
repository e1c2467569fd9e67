"""Make a new registry from main's and the reports, in a process that can write nowhere else.

    python -m ci.apply OUT REPORTS [--site]

It uses main's code and plugins, from the working directory; ``OUT/registry`` is the new registry.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ci.inside import write_json
from ci.report import parse
from neuco_core.errors import NeucoError
from neuco_core.records.model import Key, Record


def apply(registry: Path, reports: Iterable[bytes]) -> list[str]:
    """Change a copy of the registry; returns what was done, line by line."""
    from neuco_core.records.store import read_all, record_path, write_record

    old = {record.key: record for record in read_all(registry)}
    new = {record.key: record for data in reports for record in parse(data)[1]}
    kept, lines = _choose(old, new)
    gone, held = _unregistered(list(old.values()))
    for record in kept:
        write_record(record, registry)
    for record in gone:
        path = record_path(registry, *record.key)
        target = registry / "withdrawn" / path.relative_to(registry / "results")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
    lines += [f"kept {record.method} on {record.task}: its plugin cannot be imported here" for record in held]
    return [*lines, f"{len(kept)} records taken over, {len(gone)} withdrawn"]


def _choose(old: dict[Key, Record], new: dict[Key, Record]) -> tuple[list[Record], list[str]]:
    """The records to write. One that exists and is still true is never replaced by an equal one or a failure."""
    from neuco_core.runs.plan import stale_records

    stale = stale_records(new.values())
    lines = [f"left out {method} on {task}: {reason}" for (method, task, _), reason in stale.items()]
    true = [record for key, record in old.items() if key in new and record.ok]
    untrue = stale_records(true)
    settled = {record.key: record for record in true if record.key not in untrue}
    kept = []
    for key, record in new.items():
        if key in stale:
            continue
        if key in settled and (not record.ok or record.fingerprint == settled[key].fingerprint):
            lines.append(f"unchanged: {record.method} on {record.task}")
            continue
        kept.append(record)
    return kept, lines


def _unregistered(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Records whose method or task is no longer registered; and those whose plugin only fails to import here."""
    from neuco_core.plugins.catalog import catalog
    from neuco_core.plugins.discovery import inside
    from neuco_core.specs import Method, Task

    methods, tasks = catalog().all(Method), catalog().all(Task)
    broken = {problem.name for problem in catalog().problems()}
    gone: list[Record] = []
    held: list[Record] = []
    for record in records:
        lost = [name for name, known in ((record.method, methods), (record.task, tasks)) if name not in known]
        if lost:
            unsure = any(inside(name, plugin) for name in lost for plugin in broken)
            (held if unsure else gone).append(record)
    return gone, held


def rebuild(registry: Path, site: Path | None) -> list[str]:
    """Boards, and the site if it is wanted."""
    from neuco_core.boards.current import current
    from neuco_core.boards.store import write_board

    now = current(registry)
    lines = []
    for suite in now.choose():
        changes = write_board(registry, now.board(suite))
        lines.append(f"board {suite.id}: {'; '.join(changes) if changes else 'unchanged'}")
    if site is not None:
        from neuco_core.boards.views.site.source import gather
        from neuco_core.boards.views.site.write import write_site

        lines.append(f"site: {write_site(gather(registry, ()), site)} pages")
    return lines


def main(arguments: Sequence[str]) -> int:
    out, reports, *options = arguments
    registry = Path(out) / "registry"
    shutil.copytree(Path("registry"), registry)
    os.environ["NEUCO_REGISTRY"] = str(registry)  # this process is for nothing else
    try:
        lines = apply(registry, [path.read_bytes() for path in sorted(Path(reports).iterdir())])
        lines += rebuild(registry, Path(out) / "site" if "--site" in options else None)
    except NeucoError as error:
        print(f"ci: error: {error}", file=sys.stderr)
        return error.exit_code
    write_json(Path(out) / "lines.json", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
