"""Where would I stand? Files of embeddings ranked among the methods of a suite; nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_fields

from neuco_core.boards.cells import fold, from_records
from neuco_core.boards.formatting import RANK, show
from neuco_core.boards.kinds.neuco import indistinguishable
from neuco_core.boards.model import Board, BoardRow, Publication
from neuco_core.boards.published import Published, PublishedRow, list_published
from neuco_core.boards.store import Current, current
from neuco_core.env import available_cores, registry_dir
from neuco_core.errors import DataError, NeucoError, UnknownIdError, UsageError
from neuco_core.fetch.links import require_labels
from neuco_core.plugins.catalog import Catalog, load_protocol
from neuco_core.records.model import Key, Record
from neuco_core.records.store import read_all
from neuco_core.runs.engine import default_limits, open_engine
from neuco_core.runs.files import EmbeddingsFile, free_names, open_file
from neuco_core.runs.plan import make_plan
from neuco_core.runs.run import make_record, run_plan, shared_folder
from neuco_core.runs.worker import shared_labels
from neuco_core.specs import Suite, Task
from neuco_core.text import LONGEST_REPR, counted, join_names, one_line

YOURS = " (yours)"


@dataclass(frozen=True)
class FileRank:
    """Where a file stands. ``missing`` names, by dataset, the labelled samples that the file lacks."""

    file: Path
    row: BoardRow
    sentence: str
    missing: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return f"FileRank({one_line(self.sentence, LONGEST_REPR)})"

    def to_json(self) -> dict[str, Any]:
        missing = {dataset: list(ids) for dataset, ids in self.missing.items()}
        return {"file": self.file.name, "method": self.row.method, "sentence": self.sentence, "missing": missing}


@dataclass(frozen=True)
class Standing:
    """A board with files among its methods: their rows are marked. ``notes`` tell their places and what they lack."""

    board: Board
    places: tuple[FileRank, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(place.sentence for place in self.places)

    def __repr__(self) -> str:
        return f"Standing({one_line(str(self), LONGEST_REPR)})"


def rank_on(
    suite: str | Suite,
    *files: str | Path,
    options: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    registry: Path | None = None,
    on_record: Callable[[Record], None] | None = None,
    name: str = "",
    allow_labels: bool = False,
) -> Standing:
    """Score files of embeddings on a suite's tasks, by its protocol, and rank them in the pool of its board.

    Args:
        suite: a suite, its id, or the id of a published board that names its protocol.
        *files: files of embeddings.
        options: options of the board's kind.
        only: patterns of method ids; the pool is the files and the methods that match one.
        registry: the registry to read; it is never written.
        on_record: called with each score.
        name: what to call a single file.
        allow_labels: do not refuse a file with a task's labels in a column.

    Returns:
        The board with the files in it, and the place of each.
    """
    registry = registry or registry_dir()
    catalog = Catalog(registry=registry)
    published = {item.id: item for item in list_published(registry)}.get(suite) if isinstance(suite, str) else None
    if published is not None:
        chosen = _as_suite(published)
    else:
        chosen = catalog.suite(suite) if isinstance(suite, str) else suite
    if not files:
        raise UsageError("no file to rank", expected="a CSV, Parquet, NPZ or NPY file of embeddings")
    paths = list(dict.fromkeys(map(Path, files)))
    tasks = catalog.suite_tasks(chosen)
    suites, _ = catalog.survey_suites(living=False)
    require_labels(chosen.id, tasks, next((s.id for s in suites.values() if {*chosen.tasks} <= {*s.tasks}), ""))
    names = free_names(paths, taken={record.method for record in read_all(registry)})
    with shared_folder() as shared:
        opened = [_open(path, tasks, names[path], chosen.id, shared, allow_labels) for path in paths]
        now = current(registry)  # takes longer than to see that a file will not do
        now.choose_records(only)  # refuses an unknown name before anything is scored
        records = list(_score(opened, tasks, chosen.protocol, shared, on_record))
        missing = [_missing(file, tasks, shared) for file in opened]
    names_by_method = {file.method.id: name or file.path.name for file in opened}
    titles = {method: title + YOURS for method, title in names_by_method.items()}
    datasets = {task.id: task.dataset for task in tasks}
    uncounted: dict[Key, str] = {}
    for file, lacking in zip(opened, missing, strict=True):
        for record in records:
            if record.ok and record.method == file.method.id and datasets[record.task] in lacking:
                count = counted(len(lacking[datasets[record.task]]), "labelled sample")
                uncounted[record.key] = f"it lacks {count} that the other methods have"
    if published is not None:
        reasons = {(method, task): reason for (method, task, _), reason in uncounted.items()}
        board = _beside(published, titles, records).board(options, reasons)
        alike: Mapping[str, Sequence[str]] = dict.fromkeys(titles, ())  # printed scores have no splits to test
    else:
        pool = replace(now, records=[*now.records, *records], stale={**now.stale, **uncounted})
        board, alike = _with_alike(pool, chosen, options, (*only, *titles) if only else (), titles)
    rows = {row.method: row for row in board.rows}
    file_ranks: list[FileRank] = []
    notes: list[str] = []
    for file, lacking in zip(opened, missing, strict=True):
        row = rows[file.method.id]
        shown = names_by_method[row.method]
        sentence = _sentence(board, shown, row, alike[row.method])
        if any(key[0] == row.method for key in uncounted):
            count = counted(sum(map(len, lacking.values())), "labelled sample")
            sentence = f"Not comparable: {shown} lacks {count} that the other methods have, so it has no rank."
        file_rank = FileRank(file.path, row, sentence, lacking)
        file_ranks.append(file_rank)
        notes += _notes(file_rank, file, records)
    marked = tuple(replace_fields(row, title=titles.get(row.method, row.title)) for row in board.rows)
    return Standing(replace_fields(board, rows=marked), tuple(file_ranks), tuple(notes))


def _as_suite(published: Published) -> Suite:
    """The tasks and the protocol of a published board."""
    if not published.protocol:
        hint = "Name the board of a suite; see `neuco leaderboard list`"
        raise UsageError("this published board does not say how a file would be scored", where=published.id, hint=hint)
    return Suite(id=published.id, tasks=dict.fromkeys(published.tasks, 1), protocol=published.protocol)


def _beside(published: Published, titles: Mapping[str, str], records: Sequence[Record]) -> Published:
    """A published board with the files that have a score on each of its tasks."""
    results = {(record.method, record.task): record for record in records}
    rows = []
    for method, title in titles.items():
        cells = [results[method, task] for task in published.tasks]
        scores = [record.mean for record in cells if record.mean is not None]
        if len(scores) < len(cells):
            lacks = [record for record in cells if record.mean is None]
            tasks = join_names([record.task for record in lacks])
            raise DataError(f"{title} has no score on {tasks}", where=published.id, hint=lacks[0].reason)
        rows.append(PublishedRow(method=method, title=title, name=title, baseline=False, scores=tuple(scores)))
    return replace_fields(published, rows=(*published.rows, *rows))


def rank_of(
    suite: str | Suite,
    method: str,
    *,
    options: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    registry: Path | None = None,
) -> Standing:
    """Where a method with records stands on a suite's board."""
    now = current(registry or registry_dir())
    chosen = now.choose([suite])[0] if isinstance(suite, str) else suite
    board, alike = _with_alike(now, chosen, options, (*only, method) if only else (), [method])
    rows = {row.method: row for row in board.rows}
    if method not in rows:
        raise UnknownIdError("method on this board", method, rows)
    sentence = _sentence(board, method, rows[method], alike[method], "has")
    return Standing(board, (FileRank(Path(method), rows[method], sentence, {}),), (sentence,))


def _with_alike(
    pool: Current, suite: Suite, options: Mapping[str, Any] | None, only: Sequence[str], methods: Iterable[str]
) -> tuple[Board, dict[str, Sequence[str]]]:
    """The board, and those whom its test does not tell from some of its methods, the nearest in rank first."""
    board = pool.board(suite, options, only)
    cells, copies = fold(from_records(pool.choose_records(only), suite, pool.why_stale))
    alike: dict[str, Sequence[str]] = {}
    for method in methods:
        ranked = copies.get(method, method)
        alike[method] = ()
        if ranked in board.ranks and board.kind == "neuco":
            same = indistinguishable(cells, ranked, board.options)
            alike[method] = sorted(same, key=lambda other: (abs(board.ranks[other] - board.ranks[ranked]), other))
    return board, alike


def _open(path: Path, tasks: Sequence[Task], name: str, suite: str, shared: str, allow_labels: bool) -> EmbeddingsFile:
    file = open_file(path, tasks, name=name, shared=shared, several=True, allow_labels=allow_labels)
    if set(file.left_out) == {task.label for task in tasks}:
        datasets = ", ".join(sorted({task.dataset for task in tasks}))
        hint = "See `neuco leaderboard list` for other suites; the column of ids must be named id"
        expected = f"ids of {datasets}"
        got = next(iter(file.left_out.values())).partition(": ")[2]
        what = f"no id of the file has a label in suite {suite!r}"
        raise UsageError(what, where=path, expected=expected, got=got or None, hint=hint)
    return file


def _score(
    files: Sequence[EmbeddingsFile],
    tasks: Sequence[Task],
    protocol: str,
    shared: str,
    on_record: Callable[[Record], None] | None,
) -> Iterator[Record]:
    """A record for every file and task; where there is no score, it says why."""
    plan = make_plan([], tasks, load_protocol(protocol), registry_dir(), files=files)
    jobs = available_cores()
    engine = open_engine("local", jobs)
    threads = jobs if sum(cell.to_run for cell in plan.cells) < 4 * jobs else 1
    # Nothing is kept of a file that is not saved, so the registry is only named here.
    run = run_plan(plan, registry_dir(), engine, default_limits(jobs), threads=threads, shared=shared)
    with closing(run) as records:
        for record in records:
            if on_record:
                on_record(record)
            yield record
    yield from (make_record(cell, None, engine.name) for cell in plan.cells if not cell.to_run)


def _missing(file: EmbeddingsFile, tasks: Sequence[Task], shared: str) -> dict[str, tuple[str, ...]]:
    lacking: dict[str, dict[str, None]] = {}
    for task in tasks:
        try:
            labelled = shared_labels(task, shared).ids
        except NeucoError:
            continue  # its cell says that the labels cannot be had
        lacking.setdefault(task.dataset, {}).update(dict.fromkeys(name for name in labelled if name not in file.ids))
    return {dataset: tuple(names) for dataset, names in lacking.items() if names}


def _sentence(board: Board, name: str, row: BoardRow, alike: Sequence[str], verb: str = "would have") -> str:
    if row.same_as:
        first = next(other for other in board.rows if other.method == row.same_as)
        return f"{name} has the same embeddings as {row.same_as}. {_sentence(board, row.same_as, first, alike, 'has')}"
    if row.rank is None:
        lacks = f"it has no score on {len(row.lacks)} of {counted(len(row.cells), 'task')} ({join_names([*row.lacks])})"
        return f"{name} is not ranked: {row.note or lacks}."
    interval, how = row.intervals.get(RANK.key), board.uncertainty
    sure = f"; ranks {show(RANK, interval)} are plausible at {how.level:.0%}" if interval and how else ""
    tied = f"; statistically indistinguishable from {join_names(alike)}" if alike else ""
    if len(board.ranked) == 1:
        return f"{name} is the only method with scores here, so there is no rank yet."
    among = " among results as published, which were not re-run here" if isinstance(board.about, Publication) else ""
    return f"{name} {verb} rank {row.rank} of {len(board.ranked)}{among}{sure}{tied}."


def _notes(file_rank: FileRank, file: EmbeddingsFile, records: Sequence[Record]) -> Iterator[str]:
    yield file_rank.sentence
    name = file_rank.file.name
    yield from (f"warning: {name}: {sentence}." for sentence in file.warnings)
    for how in sorted({str(r.provenance["labels"]) for r in records if "labels" in r.provenance}):
        yield f"The labels are {how}."
    replaced = max(r.samples.get("replaced_values", 0) for r in records if r.method == file_rank.row.method)
    if replaced:
        yield f"{name}: {counted(replaced, 'value')} missing or not a number, counted as 0."
