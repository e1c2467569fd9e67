"""The rules for ``additional_info.json``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from neuco_extensions.geobench.facts import INFO, KEYS, LIST, MODEL_KEYS, MODELS, STRING
from neuco_extensions.geobench.faults import Fault
from neuco_extensions.geobench.folder import Folder

official = partial(Fault, file=INFO, official=True)
ours = partial(Fault, file=INFO)
KINDS = {STRING: str, LIST: list}
TRIALS, NEW = "Number of HPO trials", "New model info"


def info_faults(folder: Folder) -> Iterator[Fault]:
    info = folder.info
    if info is None:
        return
    for key, kind in KEYS.items():
        if key not in info:
            yield official("keys", "the key is missing", _add(key, info), column=key)
        elif not isinstance(info[key], KINDS[kind]):
            cure = f'Put it into quotes: "{info[key]}"' if isinstance(info[key], int | float) else f"Make it {kind}"
            yield official("key-types", f"not {kind}", cure, column=key, value=_plain(info[key]))
    trials = info.get(TRIALS)
    if isinstance(trials, str) and not trials.strip().isdigit():
        yield ours("trials", "not a whole number", "Give the number of trials as digits", column=TRIALS, value=trials)
    models = info.get(NEW)
    if isinstance(models, list):
        for number, model in enumerate(models, 1):
            yield from _model(number, model)
        yield from _unknown_models(folder, models)


def _plain(value: Any) -> str:
    """A value for a message; of what holds others only its kind, for it may be nested without end."""
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else str(value)


def _add(key: str, info: dict[str, Any]) -> str:
    plain = key.strip().lower()
    close = next((name for name in info if name.strip().lower() == plain), None)
    space = ", with a space at its end" if key.endswith(" ") else ""
    return f"Rename {close!r} to {key!r}{space}" if close else f"Add {key!r}{space}; N/A if there is nothing to say"


def _model(number: int, model: Any) -> Iterator[Fault]:
    if not isinstance(model, dict):
        yield official("model-info", f"entry {number} is not an object", "Write { … }", column=NEW, value=_plain(model))
        return
    for key in MODEL_KEYS:
        if key not in model:
            cure = f"Add {key!r}" + ("" if key == "unique_backbone_key" else ", or leave it empty")
            yield official("model-info", f"entry {number} lacks {key!r}", cure, column=NEW)
        elif not isinstance(model[key], str):
            what = f"entry {number}, {key!r}: not a text"
            yield ours("model-info", what, "Put it into quotes", column=NEW, value=_plain(model[key]))


def _unknown_models(folder: Folder, models: list[Any]) -> Iterator[Fault]:
    """A backbone that nobody knows would stand on the board without a name and a size."""
    named = [m for m in models if isinstance(m, dict) and isinstance(m.get("unique_backbone_key"), str)]
    told = {m["unique_backbone_key"] for m in named if m.get("model_display_name")}
    used = dict.fromkeys(name for row in folder.table or () if (name := row.text("backbone")))
    for name in used:
        if name not in MODELS and name not in told:
            cure = f"Add an entry with unique_backbone_key {name!r}, its display name and its size"
            yield ours("new-model", "the board does not know this backbone", cure, column=NEW, value=name)
    for name in sorted(str(key) for key in told if key and key not in used):
        if folder.table is not None:
            what, cure = "no row has this backbone", "Spell it as in the column 'backbone', or remove the entry"
            yield ours("new-model", what, cure, column=NEW, value=name)
