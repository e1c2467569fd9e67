"""docs/encoders.md does what it says: its code runs, its commands exist, its names are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import methods as table
from neuco_core import encoders as encode_bands
from neuco_core.encode.run import encode_dataset
from neuco_core.plugins.catalog import list_tasks, load_method, load_protocol
from neuco_core.testing import TinyCubes

PAGE = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_ten_lines_are_a_method_and_keep_the_promises() -> None:
    assert BLOCKS[0].strip().count("\n") <= 10
    names: dict[str, Any] = {"__name__": "docs_example"}
    for block in BLOCKS:
        exec(block, names)
    (method,) = names["neuco_methods"]()
    embeddings = encode_dataset(method, TinyCubes(count=3).dataset(), {})
    assert embeddings.values.shape == (3, 27)


@pytest.mark.parametrize("name", ["spread_ids", "encode_each", "over_seasons"])
def test_helpers_that_are_named_exist(name: str) -> None:
    assert f"`{name}`" in PAGE
    assert callable(getattr(encode_bands, name))


def test_every_way_to_bring_seasons_together_is_told() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| .*(?:encoded|averaged)", PAGE, re.MULTILINE)) == set(
        encode_bands.SEASON_MODES
    )


def test_the_table_has_the_best_method_first_and_says_when_an_order_fails() -> None:
    tasks = list_tasks("digits_class")
    rows = {"random": {"digits_class": (2.0, 0.1)}}
    rows["averaging"] = table.score_method(load_method("averaging"), tasks, load_protocol("ridge+k=2"))
    text = table.markdown(rows, tasks)
    assert [line.split("`")[1] for line in text.splitlines()[2:]] == ["averaging", "random"]
    low, high = {"t": (1.0, 0.1)}, {"t": (2.0, 0.2)}
    assert table.orders("olinda", {"random": low, "averaging": high, "pca": high, "mosaiks": high}) == [
        "Expected order does NOT hold: random 1.00 < averaging 2.00 < pca 2.00 < mosaiks 2.00."
    ]
    assert "holds: mosaiks_pre 1.00 < mosaiks 2.00" in table.orders("mini", {"mosaiks_pre": low, "mosaiks": high})[0]
    assert table.number(-0.5, 2) == "−0.50"
