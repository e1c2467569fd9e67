"""Figures of a run: loss curves, predicted against true values, confusion matrices; one set per task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.figures import Frames, blank, save

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from neuco_core.scoring.scorer import Score

INK, FAINT, MARK = "#1b3a57", "#9fb8cc", "#b5481f"


def write_plots(folder: Path, score: Score, prefix: str) -> None:
    """Write the figures of one task below its folder, named as in NeuCo-Bench."""
    for kind, name in (("train", "train_loss"), ("validation", "test_loss")):
        if name in score.curves:
            along = "epoch" if score.protocol.probe == "linear" else "setting of the search"
            figure = loss_figure(score.curves[name], f"{score.task}: {kind} loss", along)
            save(figure, folder / "loss_curves" / f"{score.task}_{kind}_loss_curves.png")
    if score.kind == "regression":
        _scatters(folder / "regression_scatter", score, f"{prefix}_{score.task}_scatter_fold")
    else:
        _confusions(folder / "confusion_matrices", score, f"{prefix}_{score.task}_cm_fold")


def loss_figure(curves: np.ndarray, title: str, along: str = "epoch") -> Figure:
    import numpy as np

    figure, axes = blank(6, 4)
    epochs = np.arange(1, curves.shape[1] + 1)
    mark = "o" if len(epochs) == 1 else None  # a line through one point cannot be seen
    for i, curve in enumerate(curves):
        axes.plot(epochs, curve, color=FAINT, linewidth=0.7, marker=mark, label="" if i else "one split")
    middle = np.nanmedian(curves, axis=0) if np.isfinite(curves).any(axis=0).all() else None
    if middle is not None:
        axes.plot(epochs, middle, color=INK, linewidth=2, marker=mark, label="median")
    axes.set(xlabel=along, ylabel="loss", title=title)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    return figure


def _scatters(folder: Path, score: Score, stem: str) -> None:
    """Predicted against true values, one figure per split on the same axes."""
    import numpy as np

    if not score.models:
        return
    pairs = [np.stack([np.ravel(model["truth"]), np.ravel(model["prediction"])], axis=1) for model in score.models]
    low, high = np.nanmin(np.vstack(pairs), axis=0), np.nanmax(np.vstack(pairs), axis=0)
    figure, axes = blank(5, 5)
    dots = axes.scatter([], [], s=16, color=INK, alpha=0.6, linewidths=0, label="test sample")
    ends = [float(low[0]), float(high[0])]
    axes.plot(ends, ends, color=MARK, linewidth=1.2, linestyle="--", label="perfect")
    pad = 0.04 * np.where(high > low, high - low, 1.0)
    limits = np.stack([np.minimum(low, low[0]) - pad, np.maximum(high, high[0]) + pad])
    title = axes.set_title(score.task)
    axes.set(xlabel="true value", ylabel="predicted value", xlim=limits[:, 0], ylim=limits[:, 1])
    axes.legend(frameon=False, loc="upper left")
    frames = Frames(figure, (dots, title))
    for index, pair in enumerate(pairs, start=1):
        dots.set_offsets(pair)
        title.set_text(_title(score, index))
        frames.save(folder / f"{stem}{index}.png")


def _confusions(folder: Path, score: Score, stem: str) -> None:
    """Confusion matrices, one figure per split with the same colours."""
    import numpy as np

    if not score.models:
        return
    tables = [_confusion(model["truth"], model["prediction"]) for model in score.models]
    most = max(int(table.max()) for table in tables)
    figure, axes = blank(4.6, 4.2)
    image = axes.imshow(np.zeros_like(tables[0]), cmap="Blues", vmin=0, vmax=most)
    names = [f"{value:g}" for value in score.classes] or [str(i) for i in range(len(tables[0]))]
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    places = np.ndindex(tables[0].shape) if len(names) <= 20 else ()  # more numbers would not be legible
    texts = {(row, column): axes.text(column, row, "", ha="center", va="center") for row, column in places}
    figure.colorbar(image, ax=axes, label="samples", shrink=0.85)
    title = axes.set_title(score.task)
    axes.set(xlabel="predicted class", ylabel="true class")
    frames = Frames(figure, (image, *texts.values(), title))
    for index, table in enumerate(tables, start=1):
        image.set_data(table)
        for place, text in texts.items():
            text.set(text=str(int(table[place])), color="white" if table[place] > most / 2 else "black")
        title.set_text(_title(score, index))
        frames.save(folder / f"{stem}{index}.png")


def _confusion(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    import numpy as np

    counts = np.zeros((probabilities.shape[1], probabilities.shape[1]), dtype=np.int64)
    np.add.at(counts, (truth, probabilities.argmax(axis=1)), 1)
    return counts


def _title(score: Score, index: int) -> str:
    return f"{score.task}, split {index}: {score.metric} {score.per_split[index - 1]:.3f}"
