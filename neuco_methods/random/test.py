"""The random method: the row depends on id and seed, and on nothing else."""

from __future__ import annotations

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.testing import check_encoder
from neuco_methods.random import make_encoder


def encode(*ids: str, dim: int = 1024, seed: int = 42) -> np.ndarray:
    batch = CubeBatch(ids, np.zeros((len(ids), 0, 0, 0, 0), np.float32), (), ())
    return np.asarray(make_encoder(dim, seed).encode(batch))


def test_keeps_the_promises_of_an_encoder() -> None:
    assert check_encoder(make_encoder, uses_ids=True).shape == (12, 1024)


def test_values_are_uniform() -> None:
    values = encode(*[str(i) for i in range(64)])
    assert values.min() >= -1
    assert values.max() < 1
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 3**-0.5) < 0.01


def test_another_seed_gives_other_numbers() -> None:
    assert not np.array_equal(encode("a", seed=1), encode("a", seed=2))


def test_the_numbers_are_the_same_on_every_machine() -> None:
    steps = (encode("a", dim=3)[0].astype(np.float64) + 1) * 2**23
    assert steps.tolist() == [8214477, 10419571, 5588475]
