"""Cubes and labels as a torch ``Dataset``. Needs the extra ``neuco[torch]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neuco_core.cubes.cubes import CubeSource
from neuco_core.env import how_to_install
from neuco_core.errors import DataError, DependencyError
from neuco_core.tables.labels import Labels

try:
    import torch
    from torch.utils.data import Dataset as TorchDataset
except ImportError as error:
    raise DependencyError("the torch view needs torch", hint=f"Run `{how_to_install('torch')}`") from error


class CubeTensors(TorchDataset[dict[str, Any]]):
    """Samples as ``{"id", "image"}``, and ``"label"`` if labels are given; ``image`` is (season, band, y, x), float32.

    With labels, the samples are those that have both, in the order of the labels; ``without_cube`` counts the rest.
    ``bands`` chooses bands or whole modalities; ``transform`` is applied to each sample.
    """

    def __init__(
        self,
        source: CubeSource,
        labels: Labels | None = None,
        bands: Sequence[str] = (),
        transform: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.source = source
        self.bands = tuple(bands)
        self.transform = transform
        self.ids = source.ids()
        self.labels: np.ndarray | None = None
        self.without_cube = 0
        if labels is not None:
            joined = labels.only(self.ids)
            if not len(joined):
                raise DataError("no label matches a sample of the dataset", where=labels.task)
            self.ids, self.labels = joined.ids, joined.values
            self.without_cube = len(labels) - len(joined)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        batch = self.source.read([self.ids[index]])
        values = batch.pick(*self.bands) if self.bands else batch.values
        # A source may hand out its own memory; a tensor over it could be written to by a transform.
        sample: dict[str, Any] = {"id": self.ids[index], "image": torch.tensor(values[0])}
        if self.labels is not None:
            sample["label"] = torch.tensor(self.labels[index], dtype=torch.float32)
        return self.transform(sample) if self.transform else sample
