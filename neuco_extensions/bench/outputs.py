"""What a run writes, as NeuCo-Bench lays it out: its folder, figures of each task, probes. Every file is complete or
absent.

NeuCo-Bench stores one torch checkpoint of a probe; here the probes of all splits are kept, because these are the models
that the scores are about, as plain numbers and a short script that reads them. Their mean is a linear model, too.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Sequence
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.errors import UsageError
from neuco_core.figures import blank, save, write_figure
from neuco_core.files import jsonable, write_atomic
from neuco_core.scoring.scorer import Score
from neuco_core.scoring.splits import join
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "results_summary.json"
INK, FAINT, MARK = "#1b3a57", "#9fb8cc", "#b5481f"


def check_name(name: str, option: str) -> str:
    """Refuse a name that would leave its folder or hide in it."""
    if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
        raise UsageError(f"bad {option}", expected="a name for a folder, without / and without a leading dot", got=name)
    return name


def make_run_folder(output_dir: Path, phase: str, method: str, now: datetime) -> Path:
    """``<output_dir>/<phase>/<method>_<timestamp>/``; a second run in the same second gets a number."""
    stem = f"{method}_{now:%Y%m%d_%H%M%S}"
    for number in range(1, 1000):
        folder = output_dir / phase / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if folder.is_dir():
                continue
            raise UsageError("a file is in the way of the results", where=folder) from None
        except OSError as error:
            raise UsageError("cannot create the run's folder", where=folder, got=error.strerror) from error
        return folder
    raise UsageError("too many runs of this name in this second", where=output_dir / phase / stem)


def write_json(path: Path, value: Any) -> None:
    """Write JSON that is the same every time: sorted keys, no NaN (null instead), a newline at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(jsonable(value), allow_nan=False, ensure_ascii=False, indent=2, sort_keys=True, default=str)
    write_atomic(path, (text + "\n").encode())


def write_plots(folder: Path, score: Score, prefix: str) -> None:
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
    if not score.models:
        return
    tables = []
    for model in score.models:
        classes = model["prediction"].shape[1]
        pairs = np.ravel_multi_index((model["truth"], model["prediction"].argmax(axis=1)), (classes, classes))
        tables.append(np.bincount(pairs, minlength=classes**2).reshape(classes, classes))
    most = max(int(table.max()) for table in tables)
    figure, axes = blank(4.6, 4.2)
    image = axes.imshow(np.zeros_like(tables[0]), cmap="Blues", vmin=0, vmax=most)
    names = [f"{value:g}" for value in score.classes] or [str(i) for i in range(len(tables[0]))]
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    positions = np.ndindex(tables[0].shape) if len(names) <= 20 else ()  # more numbers would not be legible
    texts = {(row, column): axes.text(column, row, "", ha="center", va="center") for row, column in positions}
    figure.colorbar(image, ax=axes, label="samples", shrink=0.85)
    title = axes.set_title(score.task)
    axes.set(xlabel="predicted class", ylabel="true class")
    frames = Frames(figure, (image, *texts.values(), title))
    for index, table in enumerate(tables, start=1):
        image.set_data(table)
        for position, text in texts.items():
            text.set(text=str(int(table[position])), color="white" if table[position] > most / 2 else "black")
        title.set_text(_title(score, index))
        frames.save(folder / f"{stem}{index}.png")


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
        from PIL import Image

        self._canvas.restore_region(self._behind)  # type: ignore[no-untyped-call]
        for artist in self._moving:
            self._figure.draw_artist(artist)
        pixels = np.asarray(self._canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "png")
        write_figure(path, buffer.getvalue())


def _title(score: Score, index: int) -> str:
    return f"{score.task}, split {index}: {score.metric} {score.per_split[index - 1]:.3f}"


def write_probe(
    folder: Path, score: Score, embeddings: Embeddings, labels: Labels, standardize_ids: Collection[str]
) -> None:
    """Write ``model.npz``, ``metadata.json`` and ``load_model.py`` of a task's linear probes."""
    if not score.models or "weight" not in score.models[0]:
        hint = "Set `store_probes: false` in the config, or use `probe_type: linear`"
        raise UsageError(f"a {score.protocol.probe!r} probe cannot be stored", hint=hint)
    buffer = io.BytesIO()
    # The weights of each split, and what leads from raw embeddings to the units of the labels.
    joined = join(embeddings, labels, score.protocol, standardize_ids, allow_constant=True)
    scaled = score.protocol.normalize_labels and score.kind == "regression"
    np.savez(
        buffer,
        weight=np.stack([model["weight"] for model in score.models]),
        bias=np.stack([model["bias"] for model in score.models]),
        center=np.float32(joined.center if score.protocol.standardize else 0.0),
        spread=np.float32(joined.spread if score.protocol.standardize else 1.0),
        label_low=joined.y.min(axis=0) if scaled else np.zeros(joined.y.shape[1]),
        label_span=np.ptp(joined.y, axis=0) if scaled else np.ones(joined.y.shape[1]),
        classes=np.array(score.classes),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "model.npz", buffer.getvalue())
    write_atomic(folder / "load_model.py", resources.files(__package__).joinpath("load_model.py.txt").read_bytes())
    metadata = {
        "task": score.task,
        "task_type": score.kind,
        "splits": len(score.models),
        "protocol": score.protocol.name,
        "embeddings_sha256": embeddings.sha256,
        "labels_sha256": labels.sha256,
    }
    write_json(folder / "metadata.json", metadata)
