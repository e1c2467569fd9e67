"""digits_even: its contract, and a file that is the same wherever it comes from."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import numpy as np
from sklearn.datasets import load_digits

from neuco_core import load_task
from neuco_core.testing import contract
from neuco_tasks.digits_even import LABELS

test_contract = contract("task", "digits_even")


def test_labels_are_those_of_the_images() -> None:
    labels = load_task("digits_even").labels()
    assert np.array_equal(labels.values, 1 - load_digits().target % 2)
    assert (labels.ids[0], labels.ids[-1]) == ("digit-0000", "digit-1796")


def test_the_mirror_is_what_scikit_learn_ships() -> None:
    shipped = files("sklearn.datasets.data").joinpath("digits.csv.gz").read_bytes()
    assert hashlib.sha256(shipped).hexdigest() == LABELS.sha256
    assert len(shipped) == LABELS.size
