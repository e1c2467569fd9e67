"""Cubes and labels for torch."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest
import torch

from neuco_core.cubes.torch_view import CubeTensors
from neuco_core.errors import DataError, DependencyError
from neuco_core.tables.labels import labels_from_table
from tests.cubes.test_cubes import Small


def test_samples_with_labels_come_in_the_order_of_the_labels() -> None:
    labels = labels_from_table({"id": ["d", "a", "x"], "label": [3.0, 1.0, 2.0]}, "regression", task="soil")
    view = CubeTensors(Small(), labels, bands=["s2/B8A"])
    assert view.ids == ("d", "a")
    assert view.without_cube == 1
    assert view[0]["image"][:, :, 0, 0].tolist() == [[302], [312]]
    assert view[1]["label"].item() == 1.0
    with pytest.raises(DataError, match="soil: no label matches a sample"):
        CubeTensors(Small(), labels.only(["x"]))


@pytest.mark.slow  # a process that imports torch
def test_a_data_loader_makes_batches_in_worker_processes() -> None:
    labels = labels_from_table({"id": list("abcd"), "label": [3.0, 1.0, 2.0, 4.0]}, "regression")
    loader = torch.utils.data.DataLoader(
        CubeTensors(Small(), labels), batch_size=3, num_workers=1, multiprocessing_context="spawn"
    )
    batches: list[dict[str, Any]] = list(loader)
    assert [batch["id"] for batch in batches] == [["a", "b", "c"], ["d"]]
    assert batches[0]["image"].shape == (3, 2, 3, 2, 2)
    assert batches[0]["label"].tolist() == [3.0, 1.0, 2.0]


def test_samples_without_labels_and_a_transform_that_cannot_harm_the_source() -> None:
    def zero(sample: dict[str, Any]) -> dict[str, Any]:
        sample["image"].zero_()
        return sample

    assert len(CubeTensors(Small())) == 5
    sample = CubeTensors(Small())[2]
    assert set(sample) == {"id", "image"}
    assert (sample["image"].shape, sample["image"].dtype) == ((2, 3, 2, 2), torch.float32)
    view = CubeTensors(Small(), transform=zero)
    assert view[1]["image"].sum() == 0
    assert CubeTensors(Small())[1]["image"].sum() > 0


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "neuco_core.cubes.torch_view")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DependencyError, match=r"pip install 'torch>="):
        importlib.import_module("neuco_core.cubes.torch_view")
