"""The table of methods in README.md: the best first, and an order that fails is said to fail."""

from __future__ import annotations

from benchmarks import methods as table
from neuco_core.plugins.catalog import list_tasks, load_method, load_protocol


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
