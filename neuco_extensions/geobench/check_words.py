"""The rules for words that others will read: on a page, in a terminal, in a spreadsheet, as the name of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from neuco_core.text import FORMULA, clean
from neuco_extensions.geobench.facts import COLUMNS, INFO, MODELS, TABLE, TEXT
from neuco_extensions.geobench.faults import Fault
from neuco_extensions.geobench.folder import Folder

ours = partial(Fault, file=TABLE)
ours_info = partial(Fault, file=INFO)
# Letters that look alike, invisible ones and empty names have no place in a name by which rows are told apart.
BACKBONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./+ -]{0,99}")
LONGEST, LONGEST_TEXT = 200, 20_000
MOST_BACKBONES = 100


def same_name(backbone: str) -> str:
    """What is left of a name in the id of a row: backbones that share it cannot stand on one board."""
    return re.sub(r"[^a-z0-9_-]+", "-", backbone.lower()).lstrip("-_")


def word_faults(folder: Folder) -> Iterator[Fault]:
    rows = folder.table or ()
    for column in (column for column in folder.columns if COLUMNS.get(column) == TEXT):
        for row in rows:
            if (text := row.text(column)) and (wrong := _wrong(text)):
                yield ours("words", wrong[0], wrong[1], rows=(row.line,), column=column, value=text)
    yield from _backbones(dict.fromkeys(name for row in rows if (name := row.text("backbone"))))
    for key, value in (folder.info or {}).items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            yield ours_info("words", f"longer than {LONGEST_TEXT} characters", "Shorten it", column=key, value=value)
    yield from _models(folder)


def _wrong(text: str) -> tuple[str, str] | None:
    """What is wrong with a name, and its cure."""
    if len(text) > LONGEST:
        return f"longer than {LONGEST} characters", "Shorten it"
    if clean(text) != text:
        return "characters that cannot be seen", "Remove control characters and those that change the direction"
    if text.startswith(FORMULA):
        return "begins like a formula", f"Begin with none of {' '.join(FORMULA[:4])}: a spreadsheet would run it"
    return None


def _backbones(names: dict[str, None]) -> Iterator[Fault]:
    for name in names:
        if not BACKBONE.fullmatch(name):
            cure = "Use at most 100 letters, digits and _ . / + - of plain ASCII"
            yield ours("backbone", "not a plain name", cure, column="backbone", value=ascii(name)[1:-1])
    if len(names) > MOST_BACKBONES:
        cure = f"Submit at most {MOST_BACKBONES} together"
        yield ours("backbone", f"{len(names)} backbones in one submission", cure, column="backbone")
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(same_name(name), name)
        if other != name:
            cure = "Give them names that differ by more than capitals and signs"
            yield ours("backbone", f"hard to tell from {other!r}", cure, column="backbone", value=name)


def _models(folder: Folder) -> Iterator[Fault]:
    """What a backbone is called on the board; the name of another one would mislead."""
    known = {title.casefold(): key for key, (title, _) in MODELS.items()}
    models = (folder.info or {}).get("New model info")
    for entry in models if isinstance(models, list) else ():
        for key in ("model_display_name", "model_size"):
            text = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(text, str) and (wrong := _wrong(text)):
                yield ours_info("words", wrong[0], wrong[1], column=key, value=text)
        title = entry.get("model_display_name") if isinstance(entry, dict) else None
        owner = known.get(title.strip().casefold()) if isinstance(title, str) else None
        if owner and owner != entry.get("unique_backbone_key"):
            what, cure = f"the name of the backbone {owner!r}", "Choose another display name"
            yield ours_info("new-model", what, cure, column="model_display_name", value=title)
