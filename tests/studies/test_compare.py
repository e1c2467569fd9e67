"""The paired test, ``neuco compare``, and what a study starts from."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuco_core import Remote, Task, compare, evaluate, load_method, load_protocol, load_task, score
from neuco_core.errors import DataError, ScoreError, UnknownIdError, UsageError
from neuco_core.scoring.compare import common, compare_scores, corrected_t_test, holm
from neuco_core.scoring.leaks import LeakWarning
from neuco_core.studies.compare import compare_tasks
from neuco_core.studies.sources import FileSource, gather, grouped
from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from neuco_core.tables.labels import Labels
from tests.command import neuco_here as neuco

PROTOCOL = ("--k", 6, "--epochs", 3, "--lr", 0.01)


def test_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, s = 1; variance (1/3 + 1/9), so t = 2/√(4/9) = 3 with 2 degrees of freedom."""
    paired = corrected_t_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], train=90, test=10)
    assert paired.t == pytest.approx(3.0)
    # For 2 degrees of freedom the distribution has a closed form: p = 1 − t/√(2 + t²).
    assert paired.p == pytest.approx(1 - 3 / math.sqrt(11))
    reach = 4.302652729911275 * 2 / 3  # the 97.5 % point of Student's t with 2 degrees of freedom
    assert (paired.low, paired.high) == (pytest.approx(2 - reach), pytest.approx(2 + reach))
    assert (paired.difference, paired.std, paired.splits, paired.a_higher, paired.b_higher) == (2.0, 1.0, 3, 3, 0)


@settings(deadline=None)  # the first example imports scipy
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=30))
def test_swapping_the_two_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    one = corrected_t_test(a, b, train=9, test=1)
    two = corrected_t_test(b, a, train=9, test=1)
    assert one.difference == -two.difference
    assert one.p == pytest.approx(two.p)
    assert 0 <= one.p <= 1
    assert one.low <= one.difference <= one.high


def test_no_difference_and_no_doubt() -> None:
    same = corrected_t_test([0.5, 0.25], [0.5, 0.25], train=9, test=1)
    assert (same.t, same.p, same.low, same.high) == (0.0, 1.0, 0.0, 0.0)
    sure = corrected_t_test([0.75, 0.5], [0.5, 0.25], train=9, test=1)
    assert (sure.t, sure.p) == (math.inf, 0.0)
    assert sure.to_json()["t"] is None


def test_splits_without_a_score_are_left_out_and_counted() -> None:
    paired = corrected_t_test([1.0, math.nan, 3.0, 4.0], [0.0, 1.0, math.nan, 1.0], train=9, test=1)
    assert (paired.splits, paired.left_out, paired.difference) == (2, 2, 2.0)


@pytest.mark.parametrize("values", [[], [1.0], [math.nan, 1.0]])
def test_too_few_splits_give_no_test(values: list[float]) -> None:
    paired = corrected_t_test(values, [0.0] * len(values), train=9, test=1)
    assert math.isnan(paired.p)
    assert paired.to_json()["p"] is None
    with pytest.raises(ScoreError, match="pair"):
        corrected_t_test(values, [0.0] * 9, train=9, test=1)


def test_it_finds_fewer_differences_that_are_not_there() -> None:
    """Two equally useless features, 300 times: the ordinary test is fooled by overlapping splits, ours is not."""
    random = np.random.default_rng(7)
    fooled = {"ours": 0, "ordinary": 0}
    for _ in range(300):
        truth = random.standard_normal(60)
        gaps = _errors(truth, random) - _errors(truth, random)
        paired = corrected_t_test(list(gaps), [0.0] * len(gaps), train=48, test=12)
        ordinary = paired.t * math.sqrt(1 / len(gaps) + 12 / 48) * math.sqrt(len(gaps))
        fooled["ours"] += paired.p < 0.05
        fooled["ordinary"] += abs(ordinary) > 2.045  # the 5 % point with 29 degrees of freedom
    assert fooled["ours"] < 0.1 * 300
    assert fooled["ordinary"] > 0.2 * 300


def _errors(truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Squared errors of a line through a random feature, over 30 random splits (the same for every feature)."""
    x = random.standard_normal(len(truth))
    errors = []
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(len(truth))
        test, train = order[:12], order[12:]
        slope = x[train] @ truth[train] / (x[train] @ x[train])
        errors.append(((truth[test] - slope * x[test]) ** 2).mean())
    return np.array(errors)


def test_holm() -> None:
    paired = holm([0.01, 0.04, math.nan, 0.03, 0.9])
    assert paired[:2] == pytest.approx([0.04, 0.09])
    assert math.isnan(paired[2])
    assert paired[3:] == pytest.approx([0.09, 0.9])
    assert holm([]) == []


def test_both_keep_the_samples_that_both_have() -> None:
    a = make_embeddings(["x", "y", "z"], np.arange(6.0).reshape(3, 2))
    b = make_embeddings(["z", "w", "x"], np.arange(3.0).reshape(3, 1))
    first, second = common(a, b)
    assert (first.ids, second.ids) == (("x", "z"), ("z", "x"))
    assert first.values.tolist() == [[0, 1], [4, 5]]
    assert common(a, a) == (a, a)


@pytest.fixture
def other(case: Path, tmp_path: Path) -> Path:
    """The case's embeddings with fewer dimensions, less ids, in another order."""
    lines = (case / "embeddings.csv").read_text().splitlines()
    rows = [",".join(line.split(",")[:9]) for line in lines]
    (tmp_path / "other.csv").write_text("\n".join([rows[0], *reversed(rows[21:])]) + "\n")
    return tmp_path / "other.csv"


def test_a_file_against_itself(case: Path, parity_tasks: Path) -> None:
    path = case / "embeddings.csv"
    ran = neuco("compare", path, path, "--tag", "parity", "--kind", "regression", *PROTOCOL, "--json")
    assert ran.code == 0, ran.err
    assert [pair["verdict"] for pair in ran.json["tasks"]] == ["no difference shown"] * 3
    assert {pair["test"]["p"] for pair in ran.json["tasks"]} == {1.0}


def test_paired_over_the_same_samples(case: Path, other: Path, parity_tasks: Path) -> None:
    ran = neuco("compare", case / "embeddings.csv", other, "--task", "parity_delta", *PROTOCOL, "--json")
    assert ran.code == 0, ran.err
    (pair,) = ran.json["tasks"]
    assert pair["a"]["samples"]["used"] == pair["b"]["samples"]["used"] == 680
    gaps = [x - y for x, y in zip(pair["a"]["per_split"], pair["b"]["per_split"], strict=True)]
    assert pair["test"]["difference"] == pytest.approx(np.mean(gaps))
    assert pair["test"]["std"] == pytest.approx(np.std(gaps, ddof=1))
    shown = neuco("compare", case / "embeddings.csv", other, "--task", "parity_delta", *PROTOCOL)
    assert "A = embeddings.csv, B = other.csv" in shown.out
    assert "parity_delta" in shown.out


def test_a_task_that_cannot_be_compared(case: Path, other: Path, parity_tasks: Path) -> None:
    one = neuco("compare", case / "embeddings.csv", other, "--dataset", "parity", *PROTOCOL)
    assert one.code == 0
    assert "skipped parity_unpinned: the labels are not downloaded yet" in one.out
    two = neuco("compare", case / "embeddings.csv", other, "--task", "parity_unpinned", *PROTOCOL)
    assert two.code == 1


IDS = [f"s{i}" for i in range(60)]
VALUES = np.random.default_rng(0).standard_normal((60, 4))


@pytest.fixture
def files(tmp_path: Path) -> tuple[FileSource, FileSource]:
    """Embeddings that hold the label, and noise."""
    for name, values in (("good", VALUES), ("noise", VALUES[::-1])):
        np.savez(tmp_path / f"{name}.npz", ids=np.array(IDS), values=values.astype("float32"))
    return FileSource(tmp_path / "good.npz"), FileSource(tmp_path / "noise.npz")


def task(folder: Path, loader: Callable[..., Any] | None = None, **fields: Any) -> Task:
    path = folder / "labels.csv"
    path.write_text("id,label\n" + "".join(f"{name},{row[0]:.6f}\n" for name, row in zip(IDS, VALUES, strict=True)))
    source = Remote(path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest())
    return Task(**{"id": "ph", "dataset": "soil", "kind": "regression", "source": source, "loader": loader, **fields})


def test_labels_are_loaded_once_for_a_whole_study(files: tuple[FileSource, FileSource], tmp_path: Path) -> None:
    calls = []

    def loader(path: Path) -> dict[str, list[Any]]:
        calls.append(path)
        return {"id": IDS, "label": VALUES[:, 0].tolist()}

    protocol = load_protocol("ridge+k=4")
    (pair,) = compare_tasks(*files, [(protocol, [task(tmp_path, loader)])], allow_labels=True)
    assert (pair.status, len(calls)) == ("ok", 1)
    (item,) = gather([task(tmp_path, loader)], files[0])
    assert item.labels is not None
    assert len(calls) == 2


@pytest.mark.parametrize(("metric", "sign"), [("r2", 1), ("mae", -1)])
def test_the_metric_is_the_tasks_and_so_is_its_direction(
    files: tuple[FileSource, FileSource], tmp_path: Path, metric: str, sign: int
) -> None:
    protocol = load_protocol("ridge+k=20,test_size=0.4")
    (pair,) = compare_tasks(*files, [(protocol, [task(tmp_path, metric=metric)])], allow_labels=True)
    assert pair.a is not None
    assert pair.test is not None
    assert (pair.a.metric, np.sign(pair.test.difference), pair.verdict(0.05)) == (metric, sign, "A is better")


def test_a_task_that_is_left_out_says_why(files: tuple[FileSource, FileSource], tmp_path: Path) -> None:
    broken = task(tmp_path, loader=lambda path: 1 / 0, id="ph_broken")
    unpinned = task(tmp_path, source=Remote("https://example.org/a.csv"), id="ph_unpinned")
    inputs = gather([unpinned, task(tmp_path), broken], *files)
    assert [(item.task.id, item.status) for item in inputs] == [
        ("ph", "ok"),
        ("ph_broken", "failed"),
        ("ph_unpinned", "skipped"),
    ]
    assert "ZeroDivisionError" in inputs[1].reason
    assert "neuco data link soil FOLDER" in inputs[2].reason


def test_equal_reasons_share_a_line() -> None:
    lines = [("skipped", "a", "x"), ("ok", "b", ""), ("skipped", "c", "x"), ("failed", "d", "x")]
    assert grouped(lines) == ["skipped a, c: x", "failed d: x"]


CUT = (
    r"the splits of \S+ cut through the groups of olinda_elevation_mean and 2 more: scores may be too high, and "
    r"intervals too sure; ridge\+k=4,splitter=group keeps groups whole"
)


def test_commands_warn_once_where_splits_cut_through_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    for words in (("compare", "averaging", "random"), ("score", "--method", "averaging")):
        cut = neuco(*words, "--dataset", "olinda", "--k", 4)
        assert len(re.findall(CUT, cut.err)) == 1
        assert "cut through" not in neuco(*words, "--dataset", "olinda", "--protocol", "ridge+k=4,splitter=group").err
    notes = evaluate("averaging", "olinda", k=4).notes
    assert len(re.findall(CUT, "\n".join(notes))) == 1


def test_differences_of_f1_allow_for_what_training_adds_and_those_of_r2_do_not() -> None:
    rng = np.random.default_rng(5)
    hidden = rng.standard_normal((300, 4))
    values = hidden.sum(axis=1) + 2 * rng.standard_normal(300)
    rows = [hidden + noise * rng.standard_normal(hidden.shape) for noise in (0.5, 1.0)]
    ids = tuple(str(n) for n in range(300))
    third = (values > np.quantile(values, 2 / 3)).astype(float)
    widths = {}
    for kind, column in (("regression", values), ("classification", third)):
        labels = Labels("made", kind, ids, column, "0" * 64)
        a, b = (score(make_embeddings(ids, own), labels, "neuco-2025+k=10") for own in rows)
        plain = corrected_t_test(a.per_split, b.per_split, train=a.samples["train"], test=a.samples["test"])
        ours = compare_scores(a, b)
        assert ours.difference == plain.difference
        widths[kind] = (ours.high - ours.low) / (plain.high - plain.low)
    assert widths["regression"] == 1
    assert widths["classification"] > 1.1


def test_compare_in_python_takes_what_evaluate_takes_and_says_what_the_command_says() -> None:
    options: dict[str, Any] = {"k": 4, "progress": False}
    with pytest.warns(LeakWarning, match=CUT):
        compared = compare("averaging", load_method("pca"), "olinda", names=("", "PCA"), **options)
    assert repr(compared).startswith("Differences(averaging and PCA: ")
    command = neuco("compare", "averaging", "pca", "--suite", "olinda", "--k", 4, "--json").json
    assert [pair.to_json() for pair in compared] == command["tasks"]
    table = compared.frame()
    assert list(table.index) == [pair["task"] for pair in command["tasks"]]
    assert table["samples"].tolist() == [1849] * 3
    assert table["p_holm"].tolist() == [pair["p_holm"] for pair in command["tasks"]]
    assert set(table["verdict"]) <= {"averaging is better", "PCA is better", "no difference shown"}
    assert compared._repr_html_().count("<tr") == 2 + len(compared)
    made = load_method("averaging").embeddings("olinda")
    options["splitter"] = "group"
    same = compare(made, made, ["olinda_sea_level", "digits_class"], **options)
    assert (same.a, same.b) == ("A (yours)", "B (yours)")
    assert "no id of yours has a label in it" in same.frame().loc["digits_class", "reason"]
    assert same["olinda_sea_level"].test is not None
    assert same["olinda_sea_level"].test.difference == 0
    with pytest.raises(ScoreError, match="nothing could be compared; got no id of yours"):
        compare(made, made, "digits_class", **options)
    with pytest.raises(UsageError, match="bad confidence; expected a number between 0 and 1"):
        compare(made, made, "olinda", confidence=95)
    with pytest.raises(UnknownIdError, match="no comparison on task 'olinda_see'"):
        same["olinda_see"]


def test_a_file_with_labels_is_refused_in_python_as_by_the_command(tmp_path: Path) -> None:
    labels = load_task("olinda_elevation_mean").labels()
    truth = labels.values.reshape(len(labels), -1)[:, 0]
    noise = np.random.default_rng(0).standard_normal(len(truth))
    path, options = tmp_path / "mine.csv", {"k": 2, "splitter": "group", "progress": False}
    pd.DataFrame({"id": labels.ids, "a": noise, "height": truth}).to_csv(path, index=False)
    for study in (partial(compare, path, "averaging", "olinda"), partial(evaluate, path, "olinda")):
        with pytest.raises(DataError, match=r"column 'height' is the label of .* in Python allow_labels=True"):
            study(**options)
        with pytest.warns(LeakWarning, match="column 'height' is the label of"):
            assert len(study(**options, allow_labels=True)) == 3
    refused = neuco("compare", path, "averaging", "--suite", "olinda", "--k", 2)
    assert (refused.code, "Leave height out of the file" in refused.err) == (4, True)


def test_the_command_counts_the_samples_that_both_have(tmp_path: Path) -> None:
    """A winner on a few samples is another finding than one on all of them."""
    whole = load_method("averaging").embeddings("olinda")
    write_embeddings(whole.only(whole.ids[:500]), tmp_path / "few.npz")
    ran = neuco("compare", tmp_path / "few.npz", "pca", "--task", "olinda_sea_level", "--k", 4)
    assert re.search(r"^olinda_sea_level +f1 +500 of 1849 ", ran.out, re.MULTILINE)
