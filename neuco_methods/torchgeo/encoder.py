"""Load a network by the name of its weights in TorchGeo, and pool its features."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import check_seasons, encode_each, over_seasons
from neuco_core.errors import ChecksumError, FetchError, OfflineError, PluginError, UsageError
from neuco_core.fetch.settings import Settings

HEADS = ("fc.", "head.")  # the classifier of the pre-training, which a feature extractor has no use for


class TorchGeoEncoder:
    """Digital numbers go in as they are: the transforms that come with the weights bring them to scale."""

    def __init__(self, weights: str, seasons: str, bands: tuple[str, ...]) -> None:
        self.weights = weights
        self.seasons = check_seasons(seasons)
        self.bands = bands

    def fit(self, source: CubeSource) -> None:
        entry = find_weights(self.weights)
        if entry.meta["in_chans"] != len(self.bands):
            got = f"{entry.meta['in_chans']} for {self.weights}"
            raise UsageError("weights for another number of bands", expected=len(self.bands), got=got)
        self.model = load_model(entry)
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
    from torchgeo.models import get_weight  # type: ignore[import-not-found]

    try:
        return get_weight(name)
    except ValueError as error:
        raise UsageError(f"TorchGeo has no weights {name!r}", hint="See torchgeo.models.list_models()") from error


def load_model(entry: Any) -> Any:
    """The network without its classifier, its weights checked to be all there."""
    from torchgeo.models import get_model

    model = get_model(entry.meta["model"], in_chans=entry.meta["in_chans"], num_classes=0)
    missing, extra = model.load_state_dict(download(entry), strict=False)
    extra = [key for key in extra if not key.startswith(HEADS)]
    if missing or extra:
        text = f"the weights do not fit: {len(missing)} parts missing, {len(extra)} too many"
        raise PluginError(text, where=str(entry), hint="Another version of torchgeo may be needed")
    return model.eval()


def download(entry: Any) -> dict[str, Any]:
    """The weights from torch's own cache or the network; tensors only, and the hash in the file's name is checked."""
    path = Path(torch.hub.get_dir()) / "checkpoints" / entry.url.rsplit("/", 1)[-1]
    if Settings.from_environment().offline and not path.exists():
        raise OfflineError("the weights are not on this machine, and NEUCO_OFFLINE is set", where=entry.url)
    try:
        state: dict[str, Any] = entry.get_state_dict(
            progress=False, check_hash=True, map_location="cpu", weights_only=True
        )
    except (URLError, OSError) as error:
        hint = f"Fetch the file elsewhere and put it to {path}"
        raise FetchError(f"the weights cannot be downloaded: {error}", where=entry.url, hint=hint) from error
    except RuntimeError as error:
        raise ChecksumError(f"the weights were refused: {error}", where=entry.url) from error
    return state
