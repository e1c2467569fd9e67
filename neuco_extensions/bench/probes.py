"""Stored probes: plain numbers and a short script that reads them, so that nothing of neuco is needed later.

NeuCo-Bench stores one torch checkpoint; here the probes of all splits are kept, because these are the models
that the scores are about. Their mean is a linear model, too.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_extensions.bench.files import write_json

if TYPE_CHECKING:
    from neuco_core.scoring.scorer import Score
    from neuco_core.tables.embeddings import Embeddings
    from neuco_core.tables.labels import Labels

LOADER = '''"""Loads the probe beside this file; needs numpy and nothing else.

    from load_model import load_model
    model, task_type = load_model()
    predictions = model(embeddings)     # embeddings: (samples, dimensions), as they are in the file
"""

import json
from pathlib import Path

import numpy as np


class LinearProbe:
    """The mean of the probes of all splits, or the probe of one of them."""

    def __init__(self, arrays, task_type):
        self.arrays = arrays
        self.task_type = task_type

    def logits(self, x, split=None):
        x = np.asarray(x, dtype=np.float32)
        padded = np.zeros((len(x), self.arrays["weight"].shape[2]), dtype=np.float32)
        padded[:, : x.shape[1]] = x
        padded = (padded - self.arrays["center"]) / self.arrays["spread"]
        weight, bias = self.arrays["weight"], self.arrays["bias"]
        weight = weight.mean(axis=0) if split is None else weight[split]
        bias = bias.mean(axis=0) if split is None else bias[split]
        return padded @ weight.T + bias

    def __call__(self, x, split=None):
        """Values in the units of the labels, or the class of each sample."""
        out = self.logits(x, split)
        if self.task_type == "regression":
            out = out * self.arrays["label_span"] + self.arrays["label_low"]
            return out[:, 0] if out.shape[1] == 1 else out
        chosen = (out[:, 0] > 0).astype(int) if out.shape[1] == 1 else out.argmax(axis=1)
        return self.arrays["classes"][chosen]


def load_model(folder=Path(__file__).parent):
    """The probe and the type of its task."""
    with np.load(Path(folder) / "model.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    task_type = json.loads((Path(folder) / "metadata.json").read_text())["task_type"]
    return LinearProbe(arrays, task_type), task_type
'''


def write_probe(
    folder: Path, score: Score, embeddings: Embeddings, labels: Labels, standardize_ids: Collection[str]
) -> None:
    """Write ``model.npz``, ``metadata.json`` and ``load_model.py`` of a task's linear probes."""
    if not score.models or "weight" not in score.models[0]:
        raise UsageError(
            f"a {score.protocol.probe!r} probe cannot be stored",
            hint="Set `store_probes: false` in the config, or use `probe_type: linear`",
        )
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, **_arrays(score, embeddings, labels, standardize_ids))
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "model.npz", buffer.getvalue())
    write_atomic(folder / "load_model.py", LOADER.encode())
    metadata = {
        "task": score.task,
        "task_type": score.kind,
        "splits": len(score.models),
        "protocol": score.protocol.name,
        "embeddings_sha256": embeddings.sha256,
        "labels_sha256": labels.sha256,
    }
    write_json(folder / "metadata.json", metadata)


def _arrays(score: Score, embeddings: Embeddings, labels: Labels, standardize_ids: Collection[str]) -> dict[str, Any]:
    """The weights of each split, and what leads from raw embeddings to the units of the labels."""
    import numpy as np

    from neuco_core.scoring.join import join

    protocol = score.protocol
    joined = join(embeddings, labels, protocol, standardize_ids, allow_constant=True)
    scaled = protocol.normalize_labels and score.kind == "regression"
    return {
        "weight": np.stack([model["weight"] for model in score.models]),
        "bias": np.stack([model["bias"] for model in score.models]),
        "center": np.float32(joined.center if protocol.standardize else 0.0),
        "spread": np.float32(joined.spread if protocol.standardize else 1.0),
        "label_low": joined.y.min(axis=0) if scaled else np.zeros(joined.y.shape[1]),
        "label_span": np.ptp(joined.y, axis=0) if scaled else np.ones(joined.y.shape[1]),
        "classes": np.array(score.classes),
    }
