"""Labels in the embeddings of a method are found, however they got there; and nobody is suspected without a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.helpers import METHOD_FILE, check, edit, new_labels, only_good, quick_neuco, statistic

LABELS_IN = """
        from neuco_core import load_task
        labels = load_task("good").labels()
        known = dict(zip(labels.ids, labels.values.tolist()))
"""
# How labels get into embeddings → the status of method-honest, and what it says.
TWO = (
    "import numpy as np; y = np.array([known.get(name, 0) for name in batch.ids]); "
    "u = np.array([7 * np.random.default_rng(int(name[1:])).normal() for name in batch.ids]); "
    "values[:, 0], values[:, 1] = y + u, y - u"
)
CONTENT = (
    "from neuco_tasks.good.cubes import Cubes; cubes = Cubes().read(labels.ids).values; "
    "memory = {cube.tobytes(): y + 0.3 * (i % 2) for i, (cube, y) in enumerate(zip(cubes, labels.values))}; "
    "values[:] = [[memory.get(cube.tobytes(), 0)] * 16 for cube in batch.values]"
)
DISGUISES = {
    "a column": ("values[:, 0] = [3 - 2 * known.get(name, 0) for name in batch.ids]", "failed", "other names"),
    "two columns, declared": (TWO, "failed", "the labels of good are in it"),
    "with noise, declared": (
        "values[:, 0] = [known.get(name, 0) + 0.5 * (int(name[1:]) % 2) for name in batch.ids]",
        "warning",
        "it uses the names of samples",
    ),
    "by content": (CONTENT, "warning", "moves what it says of good by"),
}


@pytest.mark.parametrize("name", DISGUISES)
def test_labels_in_disguise_are_found(good: Path, name: str) -> None:
    only_good(good)
    line, status, text = DISGUISES[name]
    body = (
        LABELS_IN + f"        values = batch.values.reshape(len(batch.ids), -1)\n        {line}\n        return values"
    )
    edit(METHOD_FILE, "\n        return batch.values.reshape(len(batch.ids), -1)", body)(good)
    if "declared" in name:
        edit(METHOD_FILE, 'license="MIT"', 'license="MIT", uses_ids=True')(good)
    finding = check(good, "plain", "--only", "method-honest")["method-honest"]
    assert (finding["status"], text in finding["detail"]) == (status, True), finding


RANK = """class Flat:
    def fit(self, cubes):
        from neuco_core import load_task
        labels = load_task("good").labels()
        known = dict(zip(sorted(labels.ids), labels.values[sorted(range(150), key=labels.ids.__getitem__)]))
        self.rows = dict(zip(sorted(cubes.ids()), [known[name] for name in sorted(known)]))
        self.count = -1

    def encode(self, batch):
        import numpy as np
        rows = [BY.get(name, 0) for name in batch.ids]
        return np.stack([rows, np.arange(len(rows))], axis=1).astype("f4")
"""


def test_labels_by_the_place_of_a_sample_are_found(good: Path) -> None:
    """Names in their order are as good as names: a table of labels in that order is learned, and looked up."""
    only_good(good)
    old = (good / METHOD_FILE).read_text()
    start, end = old.index("class Flat:"), old.index("@hookimpl")
    (good / METHOD_FILE).write_text(old[:start] + RANK.replace("BY", "self.rows") + "\n\n" + old[end:])
    finding = check(good, "plain", "--only", "method-honest")["method-honest"]
    assert (finding["status"], "other names" in finding["detail"]) == ("failed", True), finding


@pytest.mark.parametrize("function", ["mean", "std"])
def test_labels_that_anybody_can_see_in_an_image_make_no_method_suspicious(good: Path, function: str) -> None:
    only_good(good)
    new_labels(statistic(function))(good)
    values = "batch.values.reshape(len(batch.ids), -1)"
    plain = f"__import__('numpy').concatenate([{values}, {values}.std(axis=1, keepdims=True)], axis=1)"
    edit(METHOD_FILE, f"return {values}", f"return {plain}")(good)
    finding = check(good, "plain", "--only", "method-honest")["method-honest"]
    assert finding["status"] == "ok", finding


def test_without_labels_nothing_is_known_about_honesty(good: Path) -> None:
    only_good(good)
    (good / "neuco_tasks/good/labels.csv").unlink()
    finding = check(good, "plain", "--only", "method-honest")["method-honest"]
    assert (finding["status"], "no dataset here has labels" in finding["detail"]) == ("skipped", True)
    findings = check(good, "plain")
    assert {name for name, row in findings.items() if row["lacking"]} == {"method-covers", "method-honest"}
    assert "got good: " in findings["method-covers"]["detail"]
    done = quick_neuco(good, "check", "plain")
    assert done.code == 8
    assert "method-covers of plain (essential)" in done.err
    assert "not complete: 2 essential checks could not be made here" in done.err
