"""digits: the contract of its task, and labels that belong to their images."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core import load_dataset, load_task
from neuco_core.errors import ChecksumError, DataError
from neuco_core.testing import contract
from neuco_tasks.digits import cubes as module
from neuco_tasks.digits.cubes import DigitCubes

test_contract = contract("task", "digits_class")


def test_labels_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    labels = load_task("digits_class").labels()
    assert np.array_equal(labels.values, load_digits().target)
    assert labels.ids == DigitCubes().ids()
    assert len(labels.classes) == 10


def test_cubes_are_as_declared() -> None:
    dataset = load_dataset("digits")
    batch = DigitCubes().read(["digit-0003", "digit-0001"])
    assert (batch.bands, batch.seasons) == (dataset.bands, dataset.seasons)
    assert batch.values.shape == (2, 1, 1, 8, 8)
    assert 0 <= batch.values.min() < batch.values.max() <= 16


def test_other_images_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IMAGES_SHA256", "0" * 64)
    with pytest.raises(ChecksumError, match="digits changed"):
        DigitCubes().read(["digit-0000"])


def test_unknown_ids_are_refused() -> None:
    with pytest.raises(DataError, match="digit-0000 to digit-1796"):
        DigitCubes().read(["digit-1797"])
