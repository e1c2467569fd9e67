"""Figures with matplotlib, written whole or not at all; the same figure is the same file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, UsageError
from neuco_core.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Format → the metadata that would differ between two runs or two versions of matplotlib.
STAMPS = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}


def check_target(path: Path | None = None) -> None:
    """Refuse a figure that cannot be drawn or written before the work begins."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise DependencyError("figures need matplotlib", hint=f"Run `{how_to_install('plots')}`") from error
    if path is not None and path.suffix.lower() not in STAMPS:
        got = path.suffix or "no suffix"
        raise UsageError("not a figure format", where=path, expected=", ".join(STAMPS), got=got)


def blank(width: float, height: float) -> tuple[Figure, Any]:
    """A figure of its own with one set of axes, which notebooks show; pyplot would keep it in a global list."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            return render(self)

    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def render(figure: Figure, suffix: str = ".png", dpi: int = 110) -> bytes:
    """A figure as the bytes of a file, without a date in it."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "neuco", "svg.fonttype": "path"}):
        figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata={STAMPS[suffix]: None})
    return buffer.getvalue()


def save(figure: Figure, path: Path, dpi: int = 110) -> None:
    """Write a figure in the format of its suffix."""
    write_figure(path, render(figure, path.suffix.lower(), dpi))


def write_figure(path: Path, data: bytes) -> None:
    try:
        write_atomic(path, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"the figure cannot be written: {reason}", where=path, hint="Choose another path") from error


class Frames:
    """Figures that differ in few artists: all else, which takes most of the time, is drawn once.

    Set the moving artists, then ``save`` a PNG; whatever else is changed in between is not seen.
    """

    def __init__(self, figure: Figure, moving: Sequence[Any], dpi: int = 110) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(dpi)
        self._figure, self._moving, self._canvas = figure, moving, FigureCanvasAgg(figure)
        for artist in moving:
            artist.set_animated(True)
        self._canvas.draw()  # type: ignore[no-untyped-call]
        self._behind = self._canvas.copy_from_bbox(figure.bbox)  # type: ignore[no-untyped-call]

    def save(self, path: Path) -> None:
        import numpy as np
        from PIL import Image

        self._canvas.restore_region(self._behind)  # type: ignore[no-untyped-call]
        for artist in self._moving:
            self._figure.draw_artist(artist)
        pixels = np.asarray(self._canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "png")
        write_figure(path, buffer.getvalue())
