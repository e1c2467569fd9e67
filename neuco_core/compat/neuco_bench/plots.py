"""Figures of a run: loss curves, predicted against true values, confusion matrices; one set per task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.figures import blank, save

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from neuco_core.scoring.scorer import Score

INK, FAINT, MARK = "#1b3a57", "#9fb8cc", "#b5481f"


def write_plots(folder: Path, score: Score, prefix: str) -> None:
    """Write the figures of one task below its folder, named as in NeuCo-Bench."""
    for kind, name in (("train", "train_loss"), ("validation", "test_loss")):
        if name in score.curves:
            figure = loss_figure(score.curves[name], f"{score.task}: {kind} loss")
            save(figure, folder / "loss_curves" / f"{score.task}_{kind}_loss_curves.png")
    for index, model in enumerate(score.models, start=1):
        if score.kind == "regression":
            figure = scatter_figure(model["truth"], model["prediction"], _title(score, index))
            save(figure, folder / "regression_scatter" / f"{prefix}_{score.task}_scatter_fold{index}.png")
        else:
            counts = _confusion(model["truth"], model["prediction"])
            figure = confusion_figure(counts, score.classes, _title(score, index))
            save(figure, folder / "confusion_matrices" / f"{prefix}_{score.task}_cm_fold{index}.png")


def loss_figure(curves: np.ndarray, title: str) -> Figure:
    import numpy as np

    figure, axes = blank(6, 4)
    epochs = np.arange(1, curves.shape[1] + 1)
    mark = "o" if len(epochs) == 1 else None  # a line through one point cannot be seen
    for i, curve in enumerate(curves):
        axes.plot(epochs, curve, color=FAINT, linewidth=0.7, marker=mark, label="" if i else "one split")
    middle = np.nanmedian(curves, axis=0) if np.isfinite(curves).any(axis=0).all() else None
    if middle is not None:
        axes.plot(epochs, middle, color=INK, linewidth=2, marker=mark, label="median")
    axes.set(xlabel="epoch", ylabel="loss", title=title)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    return figure


def scatter_figure(truth: np.ndarray, prediction: np.ndarray, title: str) -> Figure:
    import numpy as np

    figure, axes = blank(5, 5)
    x, y = np.ravel(truth), np.ravel(prediction)
    axes.scatter(x, y, s=16, color=INK, alpha=0.6, linewidths=0, label="test sample")
    ends = [float(x.min()), float(x.max())]
    axes.plot(ends, ends, color=MARK, linewidth=1.2, linestyle="--", label="perfect")
    axes.set(xlabel="true value", ylabel="predicted value", title=title)
    axes.legend(frameon=False)
    return figure


def confusion_figure(counts: np.ndarray, classes: tuple[float, ...], title: str) -> Figure:
    import numpy as np

    figure, axes = blank(4.6, 4.2)
    image = axes.imshow(counts, cmap="Blues", vmin=0)
    names = [f"{value:g}" for value in classes] or [str(i) for i in range(len(counts))]
    axes.set_xticks(range(len(counts)), names)
    axes.set_yticks(range(len(counts)), names)
    if len(counts) <= 20:  # more numbers would not be legible
        for (row, column), count in np.ndenumerate(counts):
            dark = count > counts.max() / 2
            axes.text(column, row, str(int(count)), ha="center", va="center", color="white" if dark else "black")
    figure.colorbar(image, ax=axes, label="samples", shrink=0.85)
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    return figure


def _confusion(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    import numpy as np

    counts = np.zeros((probabilities.shape[1], probabilities.shape[1]), dtype=np.int64)
    np.add.at(counts, (truth, probabilities.argmax(axis=1)), 1)
    return counts


def _title(score: Score, index: int) -> str:
    return f"{score.task}, split {index}: {score.metric} {score.per_split[index - 1]:.3f}"
