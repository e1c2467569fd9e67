"""Figures with matplotlib, written whole or not at all; the same figure is the same file."""

from __future__ import annotations

import io
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
