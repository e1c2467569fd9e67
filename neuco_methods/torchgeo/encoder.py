"""Load a network by the name of its weights in TorchGeo, and pool its features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import check_seasons, encode_each, import_torchvision, over_seasons
from neuco_core.errors import ChecksumError, PluginError, UsageError
from neuco_core.fetch.cache import hash_file

HEADS = ("fc.", "head.")  # the classifier of the pre-training, which a feature extractor has no use for


class TorchGeoEncoder:
    """Digital numbers go in as they are: the transforms that come with the weights bring them to scale."""

    def __init__(self, weights: str, checkpoint: Path, seasons: str, bands: tuple[str, ...]) -> None:
        self.weights, self.checkpoint = weights, checkpoint
        self.seasons = check_seasons(seasons)
        self.bands = bands

    def fit(self, source: CubeSource) -> None:
        entry = find_weights(self.weights)
        if entry.meta["in_chans"] != len(self.bands):
            got = f"{entry.meta['in_chans']} for {self.weights}"
            raise UsageError("weights for another number of bands", expected=len(self.bands), got=got)
        self.model = load_model(entry, self.checkpoint)
        self._transforms = entry.transforms
        self._index = [source.bands.index(band) for band in self.bands]

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return encode_each(batch, lambda sample: over_seasons(sample[:, self._index], self.seasons, self._features))

    def _features(self, images: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            # A copy, since some of the transforms work in place.
            ready = self._transforms(torch.tensor(images, dtype=torch.float32))
            return np.asarray(self.model(ready).reshape(len(images), -1).numpy())


def find_weights(name: str) -> Any:
    """TorchGeo's entry for the weights: address, transforms, and what they were trained on."""
    import_torchvision()
    from torchgeo.models import get_weight  # type: ignore[import-not-found]

    try:
        return get_weight(name)
    except ValueError as error:
        raise UsageError(f"TorchGeo has no weights {name!r}", hint="See torchgeo.models.list_models()") from error


def load_model(entry: Any, checkpoint: Path) -> Any:
    """The network without its classifier, its weights checked to be all there."""
    from torchgeo.models import get_model

    model = get_model(entry.meta["model"], in_chans=entry.meta["in_chans"], num_classes=0)
    missing, extra = model.load_state_dict(read(entry, checkpoint), strict=False)
    extra = [key for key in extra if not key.startswith(HEADS)]
    if missing or extra:
        text = f"the weights do not fit: {len(missing)} parts missing, {len(extra)} too many"
        raise PluginError(text, where=str(entry), hint="Another version of torchgeo may be needed")
    return model.eval()


def read(entry: Any, checkpoint: Path) -> dict[str, Any]:
    """The weights, tensors only; TorchGeo's name for the file has the beginning of its sha256."""
    wanted = entry.url.rpartition("-")[2].partition(".")[0]
    digest = hash_file(checkpoint)
    if not digest.startswith(wanted):
        what = f"not the weights {entry}"
        raise ChecksumError(what, where=checkpoint, expected=f"a sha256 that begins with {wanted}", got=digest)
    state: dict[str, Any] = torch.load(checkpoint, map_location="cpu", weights_only=True)
    return state
