"""Memory that is used again is never somebody's who still looks at it."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

from neuco_core.cubes import blocks as module
from neuco_core.cubes.blocks import Blocks

SHAPE, TYPE = (4, 13, 8, 8), np.dtype("int16")


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_comes_back_when_it_is_let_go() -> None:
    blocks = Blocks()
    first = blocks.empty(SHAPE, TYPE)
    place = address(first)
    del first
    gc.collect()
    again = blocks.empty(SHAPE, TYPE)
    assert address(again) == place
    assert address(blocks.empty(SHAPE, TYPE)) != place


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[1:, ::2],
        lambda array: array[0][0].T,
        lambda array: array.reshape(-1)[5:],
        lambda array: np.asarray(array).view("uint8"),
        lambda array: memoryview(array),
    ],
)
def test_any_view_holds_it(view: object) -> None:
    blocks = Blocks()
    array = blocks.empty(SHAPE, TYPE)
    array[...] = 7
    held = view(array)  # type: ignore[operator]
    before = np.array(held)
    del array
    gc.collect()
    other = blocks.empty(SHAPE, TYPE)
    other[...] = 9
    assert np.array_equal(np.asarray(held), before)


def test_no_more_is_kept_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = Blocks()
    size = np.empty(SHAPE, TYPE).nbytes
    monkeypatch.setattr(module, "KEPT_BYTES", 2 * size)
    arrays = [blocks.empty(SHAPE, TYPE) for _ in range(5)]
    del arrays
    gc.collect()
    assert {at: len(free) for at, free in blocks._free.items()} == {size: 2}


def test_goes_to_another_process_without_its_memory() -> None:
    blocks = Blocks()
    blocks.empty(SHAPE, TYPE)
    gc.collect()
    assert blocks._free
    assert pickle.loads(pickle.dumps(blocks))._free == {}
