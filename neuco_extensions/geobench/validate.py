"""All faults of a submission at once: of its table, of its JSON file, and of words that others will read.

Words are shown on a page, in a terminal and in a spreadsheet, and names tell the rows of a board apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from neuco_core.text import FORMULA, clean
from neuco_extensions.geobench.facts import (
    CAPABILITIES,
    COLUMNS,
    DATASETS,
    INFO,
    INTEGER,
    KEYS,
    LIST,
    MAY_BE_EMPTY,
    METRICS,
    MODEL_KEYS,
    MODELS,
    RANGES,
    RMSE,
    RMSE_FACTOR,
    SEEDS,
    STRING,
    TABLE,
    TEXT,
    TUNING,
)
from neuco_extensions.geobench.folder import Fault, RunRow, SubmissionFolder, grouped, merged, read_folder

official = partial(Fault, file=TABLE, official=True)
ours = partial(Fault, file=TABLE)
official_info = partial(Fault, file=INFO, official=True)
ours_info = partial(Fault, file=INFO)
SCORE, TUNED = "test metric", "frozen_or_full_ft"
# Python reads more as a number than others do: 1_000, and digits of other scripts.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
# What was found by the search and is used for all repeats of a backbone on a dataset.
SETTINGS = ("Metric", "decoder", "lr", "weight_decay", "batch_size", "data_percentages")
JSON_TYPES = {STRING: str, LIST: list}
TRIALS, NEW = "Number of HPO trials", "New model info"
# Letters that look alike, invisible ones and empty names have no place in a name by which rows are told apart.
BACKBONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+ -]{0,99}")
LONGEST, LONGEST_TEXT = 200, 20_000
MOST_BACKBONES = 100
UNSEEN = "characters that cannot be seen", "Remove control characters and those that change the direction"
# Of what may be an address: a reader would follow `javascript:` as well as `https:`.
SOURCE = "source"
ADDRESSES = (SOURCE, "Paper Link", "Code Repository Link ")
SCHEME, SCHEMES = re.compile(r"([a-z][a-z0-9+.-]*):(?=\S)"), ("https", "http", "doi", "arxiv")


def validate(path: Path, *, official: bool = False) -> list[Fault]:
    return faults_of(read_folder(path), official=official)


def faults_of(folder: SubmissionFolder, *, official: bool = False) -> list[Fault]:
    """Every fault; with ``official`` only those by which the leaderboard itself would refuse."""
    faults = merged([*folder.faults, *table_faults(folder), *info_faults(folder), *word_faults(folder)])
    return [fault for fault in faults if fault.official or not official]


def number_of(text: str) -> float | None:
    """The number that a cell holds, ``None`` if it is none."""
    return float(text) if NUMBER.fullmatch(text) else None


def in_row(row: RunRow, column: str, rule: str, what: str, cure: str, *, official: bool = False) -> Fault:
    return Fault(rule, what, cure, TABLE, (row.line,), column, row.text(column), official)


def table_faults(folder: SubmissionFolder) -> Iterator[Fault]:
    if folder.table is None:
        return
    for column in COLUMNS:
        if column not in folder.columns:
            close = _alike(column, folder.further, 0.8)
            # ascii() tells a letter of another script, which may look the same.
            cure = f"Rename {close[0]!a} to {column!r}" if close else f"Add it: {COLUMNS[column]} in every row"
            yield official("columns", "the column is missing", cure, rows=(1,), column=column)
    present = [column for column in COLUMNS if column in folder.columns]
    for column in present:
        yield from _types(column, folder.table)
        yield from _values(column, folder.table)
    yield from _names(folder.table, present)
    if TUNED in present:
        yield from _tuning(folder.table)
    if SCORE in present:
        yield from _scores(folder.table)
    if {"backbone", "dataset"} <= set(present):
        yield from _cells(folder.table, present)
        yield from _coverage(folder.table)


def _types(column: str, rows: Sequence[RunRow]) -> Iterator[Fault]:
    filled = [(row, text) for row in rows if (text := row.text(column))]
    if COLUMNS[column] == TEXT:
        # A table reader makes numbers of a column in which all is numbers, and the leaderboard then misses the text.
        if filled and all(number_of(text) is not None for _, text in filled):
            cure = "Write names, not numbers"
            yield official("types", "the column holds numbers only", cure, column=column, value=filled[0][1])
        if rows and not filled:
            yield official("empty", "the column has no value at all", "Fill it in", column=column)
        return
    what = f"not {'an' if COLUMNS[column] == INTEGER else 'a'} {COLUMNS[column]}"
    for row, text in filled:
        if number_of(text) is None:
            bare = text.rstrip("% ").replace(",", ".").replace("_", "")
            cure = f"Write {bare}" if number_of(bare) is not None else "Write a number, without a unit"
            yield in_row(row, column, "types", what, cure, official=True)


def _values(column: str, rows: Sequence[RunRow]) -> Iterator[Fault]:
    for row in rows:
        text = row.text(column)
        number = number_of(text) if text and COLUMNS[column] != TEXT else None
        if not text and column not in MAY_BE_EMPTY and column != TUNED:  # of which there is a rule of its own
            # The leaderboard counts scores that are there, so a missing one is one seed too few; of other columns
            # it does not notice.
            shown = row.cells.get(column, "")
            yield ours("empty", "no value", "Fill it in", rows=(row.line,), column=column, value=shown)
        elif number is not None and COLUMNS[column] == INTEGER and math.isfinite(number) and number != int(number):
            yield in_row(row, column, "types", "not a whole number", "Write a whole number")
        elif number is not None and (bounds := _outside(column, number)):
            yield in_row(row, column, "range", "out of range", f"Write a value that is {bounds}")


def _outside(column: str, value: float) -> str:
    if column == SCORE:
        return "" if math.isfinite(value) else "finite"
    least, most, closed = RANGES[column]
    inside = math.isfinite(value) and (value >= least if closed else value > least) and (most is None or value <= most)
    bounds = f"{'at least' if closed else 'above'} {least}" + (f" and at most {most}" if most is not None else "")
    return "" if inside else bounds


def _names(rows: Sequence[RunRow], present: Sequence[str]) -> Iterator[Fault]:
    for column, names in (("dataset", tuple(DATASETS)), ("Metric", METRICS)):
        for row in rows if column in present else ():
            if row.text(column) not in ("", *names):
                yield in_row(row, column, "unknown", f"no such {column.lower()}", _close(row.text(column), names))
    for row in rows if {"dataset", "Metric"} <= set(present) else ():
        dataset, metric = row.text("dataset"), row.text("Metric")
        if dataset in DATASETS and metric in METRICS and DATASETS[dataset] != metric:
            cure = f"Score {dataset} by {DATASETS[dataset]}"
            yield in_row(row, "Metric", "metric", f"the metric does not fit the dataset {dataset}", cure)


def _tuning(rows: Sequence[RunRow]) -> Iterator[Fault]:
    cure = f"Write {' or '.join(TUNING)}"
    for row in rows:
        if not row.text(TUNED):
            yield official("tuning", "no value", cure, rows=(row.line,), column=TUNED)
        elif row.text(TUNED) not in TUNING:
            yield in_row(row, TUNED, "tuning", "neither frozen nor full_ft", cure, official=True)
    lines = {way: [row.line for row in rows if row.text(TUNED) == way] for way in TUNING}
    if all(lines.values()):
        rare = min(TUNING, key=lambda way: len(lines[way]))
        cure = "Submit frozen and fully tuned models as two folders"
        what = "frozen and full_ft in one submission"
        yield ours("mixed-tuning", what, cure, rows=tuple(lines[rare]), column=TUNED, value=rare)


@lru_cache(maxsize=256)
def _close(name: str, names: tuple[str, ...]) -> str:
    close = _alike(name, names, 0.75)
    return f"Write {close[0]}" if close else f"Known are {', '.join(names)}"


def _alike(name: str, others: Sequence[str], cutoff: float) -> list[str]:
    """Those that differ from a name by capitals and signs only, else the closest one."""
    letters, *others_letters = (re.sub(r"[\W_]+", "", text).lower() for text in (name, *others))
    same = [other for other, its_letters in zip(others, others_letters, strict=True) if its_letters == letters]
    return same or get_close_matches(name, others, n=1, cutoff=cutoff)


def _scores(rows: Sequence[RunRow]) -> Iterator[Fault]:
    """All metrics are shares, the higher the better; an error is turned round by the submitter."""
    for row in rows:
        score = number_of(row.text(SCORE)) or 0.0  # what is no number is a fault already
        error = row.text("dataset") == "biomassters" or row.text("Metric") == RMSE
        if math.isfinite(score) and (score > 1 or (score < 0 and not error)):
            cure = "Write a share between 0 and 1" + (f": {score / 100:g} for {score:g} %" if 1 < score <= 100 else "")
            if error:
                cure = f"Write 1 - rmse × {RMSE_FACTOR}, which is {1 - score * RMSE_FACTOR:g} if this is the rmse"
            yield in_row(row, SCORE, "score", "not a score", cure)


def _cells(rows: Sequence[RunRow], present: Sequence[str]) -> Iterator[Fault]:
    for (backbone, dataset), cell_rows in grouped(rows).items():
        lines, name = tuple(row.line for row in cell_rows), f"{backbone} on {dataset}"
        scored = sum(bool(row.text(SCORE)) for row in cell_rows)
        if SCORE in present and scored != SEEDS:
            cure = "Run it with more seeds" if scored < SEEDS else f"Keep {SEEDS} of them, chosen beforehand"
            what = f"{name} has {scored} runs instead of {SEEDS}"
            yield official("seeds", what, cure, rows=lines, column="Seed")
        seeds: dict[float | None, list[RunRow]] = {}  # 1 and 1.0 are one seed
        for row in cell_rows:
            seeds.setdefault(number_of(row.text("Seed")), []).append(row)
        for twice in (same for seed, same in seeds.items() if seed is not None and len(same) > 1):
            what, cure = f"{name} has a seed twice", "Keep one of the rows, and run another seed"
            same_lines, shown = tuple(row.line for row in twice), twice[0].text("Seed")
            yield ours("duplicate", what, cure, rows=same_lines, column="Seed", value=shown)
        for column in (column for column in SETTINGS if column in present):
            # Of numbers the value counts, not how it is written; what is no number is a fault already.
            texts = [text for row in cell_rows if (text := row.text(column))]
            values = {text if COLUMNS[column] == TEXT else number_of(text): text for text in texts}
            if len(values) > 1 and None not in values:
                what, cure = f"{name} has several values", "Repeat one setting with several seeds"
                shown = ", ".join(sorted(values.values()))
                yield ours("mixed-settings", what, cure, rows=lines, column=column, value=shown)


def _coverage(rows: Sequence[RunRow]) -> Iterator[Fault]:
    """By their rules all backbones together must cover a capability, by ours each one; told of all first."""
    datasets: dict[str | None, set[str]] = {None: set()}
    for backbone, dataset in grouped(rows):
        for whose in (None, backbone):
            datasets.setdefault(whose, set()).add(dataset)
    for whose, covered in datasets.items():
        lacking = {name: sorted(set(needed) - covered) for name, needed in CAPABILITIES.items()}
        nearest = min(lacking, key=lambda name: len(lacking[name]))
        if lacking[nearest]:
            what = f"the datasets{f' of {whose}' if whose else ''} cover no whole capability"
            cure = f"For {nearest} add {', '.join(lacking[nearest])}"
            yield Fault("coverage", what, cure, TABLE, column="dataset", value=whose, official=whose is None)
            if whose is None:
                return


def info_faults(folder: SubmissionFolder) -> Iterator[Fault]:
    info = folder.info
    if info is None:
        return
    for key, kind in KEYS.items():
        if key not in info:
            close = next((name for name in info if name.strip().lower() == key.strip().lower()), None)
            space = ", with a space at its end" if key.endswith(" ") else ""
            cure = f"Rename {close!r} to {key!r}" if close else f"Add {key!r}"
            cure += space if close else f"{space}; N/A if there is nothing to say"
            yield official_info("keys", "the key is missing", cure, column=key)
        elif not isinstance(info[key], JSON_TYPES[kind]):
            cure = f'Put it into quotes: "{info[key]}"' if isinstance(info[key], int | float) else f"Make it {kind}"
            yield official_info("key-types", f"not {kind}", cure, column=key, value=_plain(info[key]))
    trials, models = info.get(TRIALS), info.get(NEW)
    if isinstance(trials, str) and not trials.strip().isdigit():
        cure = "Give the number of trials as digits"
        yield ours_info("trials", "not a whole number", cure, column=TRIALS, value=trials)
    if isinstance(models, list):
        for number, model in enumerate(models, 1):
            yield from _model_entry(number, model)
        yield from _unknown_models(folder, models)


def _plain(value: Any) -> str:
    """A value for a message; of what holds others only its kind, for it may be nested without end."""
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else str(value)


def _model_entry(number: int, model: Any) -> Iterator[Fault]:
    model_fault = partial(official_info, "model-info", column=NEW)
    if not isinstance(model, dict):
        yield model_fault(f"entry {number} is not an object", "Write { … }", value=_plain(model))
        return
    for key in MODEL_KEYS:
        if key not in model:
            cure = f"Add {key!r}" + ("" if key == "unique_backbone_key" else ", or leave it empty")
            yield model_fault(f"entry {number} lacks {key!r}", cure)
        elif not isinstance(model[key], str):
            what = f"entry {number}, {key!r}: not a text"
            yield model_fault(what, "Put it into quotes", value=_plain(model[key]), official=False)
        elif key != "unique_backbone_key" and (wrong := _wrong(model[key])):
            yield ours_info("words", *wrong, column=key, value=model[key])


def _unknown_models(folder: SubmissionFolder, models: list[Any]) -> Iterator[Fault]:
    """A backbone that nobody knows would stand on the board without a name and a size."""
    named = [m for m in models if isinstance(m, dict) and isinstance(m.get("unique_backbone_key"), str)]
    described = {m["unique_backbone_key"] for m in named if m.get("model_display_name")}
    # What a backbone is called on the board; the name of another one would mislead, also in other capitals.
    owners = {title.casefold(): key for key, (title, _) in MODELS.items()}
    for model in named:
        title, key = model.get("model_display_name"), model["unique_backbone_key"]
        if isinstance(title, str) and title.strip() and owners.setdefault(title.strip().casefold(), key) != key:
            what = f"the name of the backbone {owners[title.strip().casefold()]!r}"
            yield ours_info("new-model", what, "Choose another display name", column="model_display_name", value=title)
    used = dict.fromkeys(name for row in folder.table or () if (name := row.text("backbone")))
    for name in used:
        if name not in MODELS and name not in described:
            cure = f"Add an entry with unique_backbone_key {name!r}, its display name and its size"
            yield ours_info("new-model", "the board does not know this backbone", cure, column=NEW, value=name)
    for name in sorted(described - set(used) - {""} if folder.table is not None else ()):
        what, cure = "no row has this backbone", "Spell it as in the column 'backbone', or remove the entry"
        yield ours_info("new-model", what, cure, column=NEW, value=name)


def same_name(backbone: str) -> str:
    """What is left of a name in the id of a row: backbones that share it cannot stand on one board."""
    return re.sub(r"[^a-z0-9_-]+", "-", backbone.lower()).lstrip("-_")


def word_faults(folder: SubmissionFolder) -> Iterator[Fault]:
    rows, info = folder.table or (), folder.info or {}
    for column in (column for column in folder.columns if COLUMNS.get(column) == TEXT):
        for row in rows:
            if wrong := _wrong(row.text(column)):
                yield in_row(row, column, "words", *wrong)
    names = list(dict.fromkeys(name for row in rows if (name := row.text("backbone"))))
    backbone = partial(ours, "backbone", column="backbone")
    first: dict[str, str] = {}
    for name in names:
        if not BACKBONE.fullmatch(name):
            cure = "Use at most 100 letters, digits and _ . / + - of plain ASCII"
            yield backbone("not a plain name", cure, value=ascii(name)[1:-1])
        other = first.setdefault(same_name(name), name)
        if other != name:
            cure = "Give them names that differ by more than capitals and signs"
            yield backbone(f"hard to tell from {other!r}", cure, value=name)
    if len(names) > MOST_BACKBONES:
        yield backbone(f"{len(names)} backbones in one submission", f"Submit at most {MOST_BACKBONES} together")
    for key, value in info.items():
        if isinstance(value, str) and (wrong := _wrong_text(key, value)):
            yield ours_info("words", *wrong, column=key, value=value)


def about_faults(title: str, source: str) -> list[Fault]:
    """Of the words that only the registry has, not the leaderboard's folder."""
    texts = {"title": (title, _wrong(title)), "source": (source, _wrong_text(SOURCE, source))}
    return [
        Fault("words", *wrong, file="submission.json", column=column, value=text)
        for column, (text, wrong) in texts.items()
        if wrong
    ]


def _wrong_text(key: str, text: str) -> tuple[str, str] | None:
    """Of texts that may have several lines, and of those that may be an address."""
    if len(text) > LONGEST_TEXT:
        return f"longer than {LONGEST_TEXT} characters", "Shorten it"
    if any(clean(line) != line for line in text.splitlines()):
        return UNSEEN
    scheme = SCHEME.match(text.strip().lower())
    if key in ADDRESSES and scheme and scheme[1] not in SCHEMES:
        return f"an address of the kind {scheme[1]}:", f"Give one of {', '.join(SCHEMES)}, or N/A"
    return None


def _wrong(text: str) -> tuple[str, str] | None:
    if len(text) > LONGEST:
        return f"longer than {LONGEST} characters", "Shorten it"
    if clean(text) != text:
        return UNSEEN
    if text.startswith(FORMULA):
        return "begins like a formula", f"Begin with none of {' '.join(FORMULA[:4])}: a spreadsheet would run it"
    return None
