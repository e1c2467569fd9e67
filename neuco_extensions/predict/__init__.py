"""Predict the scores that nobody has run: ``from neuco_extensions.predict import Predictor, read_table``."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import CellSource, Command, Panel

TYPE_CHECKING = False  # as in neuco_core: typing takes longer to import than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from neuco_extensions.predict.plane import Plane as Plane
    from neuco_extensions.predict.plane import fit_plane as fit_plane
    from neuco_extensions.predict.predictor import Predictor as Predictor
    from neuco_extensions.predict.read import from_board as from_board
    from neuco_extensions.predict.read import read_table as read_table
    from neuco_extensions.predict.table import ScoreTable as ScoreTable

# Name → module. As in neuco_core, everything is imported when it is first used: scipy takes its time.
_MODULES = {
    "Plane": "plane",
    "Predictor": "predictor",
    "ScoreTable": "table",
    "fit_plane": "plane",
    "from_board": "read",
    "read_table": "read",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


@hookimpl
def neuco_commands() -> Iterator[Command]:
    yield Command(id="predict", title="Predict missing scores", command=f"{__name__}.command:predict")


@hookimpl
def neuco_cells() -> Iterator[CellSource]:
    yield CellSource(id="predict", title="Predicted", fill=f"{__name__}.fill:predicted_cells")


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    yield Panel(
        id="predict-map", title="Map", data=f"{__name__}.map_figure:map_of_board", template=f"{__name__}:map.html"
    )
