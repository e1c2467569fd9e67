"""One call for what is in hand: every natural form of it, and what is said of the others."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import neuco_core as neuco
from neuco_core import Embeddings, Results, evaluate, load_method, load_task
from neuco_core.errors import DataError, NeucoError, ScoreError, UnknownIdError, UsageError
from neuco_core.scoring.leaks import LeakWarning
from neuco_core.scoring.scorer import score
from neuco_core.studies.sources import as_source
from neuco_core.tables.embeddings import make_embeddings, write_embeddings

TASK = "olinda_elevation_mean"
SUITE = "olinda"
LONGEST = 400


@pytest.fixture(scope="module")
def averaging() -> Embeddings:
    return load_method("averaging").embeddings("olinda")


@pytest.fixture(scope="module")
def frame(averaging: Embeddings) -> pd.DataFrame:
    return averaging.frame()


@pytest.fixture(scope="module")
def results(averaging: Embeddings) -> Results:
    return evaluate(averaging, SUITE, name="mine")


def means(batch: Any) -> np.ndarray:
    """An encoder as somebody types it."""
    return np.asarray(batch.values.mean(axis=(1, 3, 4)))


class Stubborn:
    """As a lazy array or a tensor on some device may be."""

    def __array__(self, *options: object) -> np.ndarray:
        raise RuntimeError("no")


@pytest.mark.parametrize("form", ["closure", "decorated", "bound method", "encoder"])
def test_a_network_in_training_mode_is_named_with_the_cure(form: str) -> None:
    import torch

    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5))

    def encode(batch: Any) -> Any:
        return network(torch.from_numpy(batch.values)).numpy()

    class Holder:
        def __init__(self) -> None:
            self.network = network

        def encode(self, batch: Any) -> Any:
            return self.network(torch.from_numpy(batch.values)).numpy()

    forms = {"closure": encode, "decorated": torch.inference_mode()(encode), "encoder": Holder()}
    what = forms.get(form, Holder().encode)
    with pytest.warns(UserWarning, match=r"training mode and has a layer Dropout: .* Call model\.eval\(\) first"):
        as_source(what)
    network.eval()
    as_source(what)  # warnings are errors here


def test_an_encoder_that_changes_with_the_batch_is_named() -> None:
    """Random weights that are drawn anew for each batch look like a bad model, not like a mistake."""

    def encode(batch: Any) -> Any:
        return means(batch) @ np.random.default_rng().standard_normal((means(batch).shape[1], 4))

    with pytest.warns(UserWarning, match=r"yours: other numbers for the same images in another batch: .* model\.eval"):
        evaluated = evaluate(encode, [TASK, "olinda_sea_level"], k=2)
    assert sum("another batch" in note for note in evaluated.notes) == 1
    evaluate(means, TASK, k=2)  # warnings are errors here


def write(averaging: Embeddings, folder: Path, name: str) -> Path:
    write_embeddings(averaging, folder / name)
    return folder / name


@pytest.mark.parametrize(
    "form", ["id", "method", "embeddings", "pair", "array", "frame", "frame with id", "mapping", "path", "text path"]
)
def test_every_form_of_the_same_numbers_has_the_same_score(
    form: str, averaging: Embeddings, frame: pd.DataFrame, results: Results, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"ids": list(averaging.ids)} if form == "array" else {}
    what: Any = {
        "id": lambda: "averaging",
        "method": lambda: load_method("averaging"),
        "embeddings": lambda: averaging,
        "pair": lambda: (averaging.ids, averaging.values),
        "array": lambda: averaging.values.tolist(),
        "frame": lambda: frame,
        "frame with id": lambda: frame.reset_index(),
        "mapping": lambda: dict(zip(averaging.ids, averaging.values, strict=True)),
        "path": lambda: write(averaging, tmp_path, "mine.parquet"),
        "text path": lambda: str(write(averaging, tmp_path, "mine.npz")),
    }[form]()
    evaluated = evaluate(what, TASK, progress=False, **more)
    assert evaluated[TASK].per_split == results[TASK].per_split
    assert evaluated[TASK].protocol.name == "ridge", "as the dataset says"


@pytest.mark.parametrize(
    "on",
    [TASK, load_task(TASK), [TASK, "olinda_sea_level"], SUITE, neuco.load_suite(SUITE), neuco.load_dataset("olinda")],
    ids=["id", "task", "list", "suite id", "suite", "dataset"],
)
def test_on_tasks_lists_suites_and_datasets(on: Any, averaging: Embeddings) -> None:
    evaluated = evaluate(averaging, on, k=2)
    assert TASK in evaluated.scores
    assert all(one.protocol.name == "ridge+k=2" for one in evaluated)


def test_a_suite_brings_its_protocol(averaging: Embeddings) -> None:
    assert {one.protocol.name for one in evaluate(averaging, "olinda-blocks", k=2)} == {"ridge+k=2,splitter=group"}
    assert evaluate(averaging, "olinda-blocks", "neuco-strict", k=2)[TASK].protocol.name == "neuco-strict+k=2"


def test_a_function_is_an_encoder() -> None:
    evaluated = evaluate(means, TASK, k=3)
    bands = evaluate("band_statistics", TASK, k=3)
    assert 0.1 < evaluated[TASK].mean < bands[TASK].mean
    assert evaluated.name == "yours"
    named = evaluate(means, TASK, k=3, name="band means")
    assert (named.name, named[TASK]) == ("band means", evaluated[TASK]), "a name is anything that people read"


def test_a_list_of_sources_gives_a_list_of_results(averaging: Embeddings) -> None:
    told: list[str] = []
    some = evaluate(
        ["averaging", means, averaging, "challenge_404"], TASK, k=2, progress=lambda _, name: told.append(name)
    )
    assert [one.name for one in some] == ["averaging", "yours", "yours", "challenge_404"]
    assert some[0][TASK].per_split == some[2][TASK].per_split
    assert (len(some[3]), math.isnan(some[3].mean_q)) == (0, True), "one that fails does not lose the others"
    assert "challenge_404: no score on 1 task: challenge_404 has no file for dataset olinda" in repr(some[3])
    assert {f"averaging on {TASK}", f"yours on {TASK}"} == set(told)
    for wrong, more in (([], {}), (["averaging", "pcaa"], {}), (["averaging"], {"name": "mine"})):
        with pytest.raises(NeucoError, match=r"an empty list|no method 'pcaa'|name is for one source"):
            evaluate(wrong, TASK, **more)


def test_missing_values_and_samples_are_told(frame: pd.DataFrame, tmp_path: Path) -> None:
    gaps = frame.copy()
    gaps.iloc[0, 0] = np.nan
    named = [*map(str, gaps.index)]
    gaps.rename(index={named[-8]: "x8"}).iloc[:-7].to_csv(tmp_path / "gaps.csv")
    with pytest.warns(UserWarning, match="gaps") as caught:
        evaluated = evaluate(tmp_path / "gaps.csv", SUITE, k=2)
    expected = [
        f"gaps.csv: 1 value missing or not a number, counted as 0; the first at id '{named[0]}', column '0'",
        f"gaps.csv on {TASK}, olinda_elevation_std and 1 more: no embedding for 8 of {len(frame)} labelled samples "
        f"({named[-8]}, {named[-7]}, {named[-6]} and 5 more): not comparable with methods that have all; no label for "
        "1 id (x8)",
    ]
    assert [str(item.message) for item in caught] == expected
    assert {item.filename for item in caught} == {__file__}, "the line that called evaluate"
    assert list(evaluated.notes[1:3]) == expected


def test_a_notebook_shows_the_figure(results: Results) -> None:
    """IPython knows how to show a figure of pyplot; of any other object it asks for this."""
    assert results.plot()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_the_results(results: Results, averaging: Embeddings, tmp_path: Path) -> None:
    table = results.frame()
    assert list(table.index) == [TASK, "olinda_elevation_std", "olinda_sea_level"]
    assert results.mean_q == pytest.approx(table["q"].mean())
    assert results[TASK] == score(averaging, load_task(TASK)), "score() has the same protocol and the same number"
    assert f"mean Q {results.mean_q:.2f} over 3 tasks under ridge" in repr(results)
    assert results._repr_html_().count("<tr") == 1 + 1 + 3
    results.plot(tmp_path / "q.svg")
    assert (tmp_path / "q.svg").read_text().count("<path") > 10
    assert len(results[TASK].frame()) == 40
    assert list(results[TASK].frame()) == ["r2", "mse", "mae"]


def test_the_place_is_that_of_a_file(results: Results, averaging: Embeddings, tmp_path: Path, root: Path) -> None:
    quick: dict[str, Any] = {"registry": root / "registry", "options": {"replicates": 20}}
    place = results.rank_on(SUITE, **quick).places[0]
    of_file = neuco.rank_on(SUITE, write(averaging, tmp_path, "mine.npz"), **quick).places[0]
    assert place.row.values == of_file.row.values
    assert place.sentence == of_file.sentence.replace("mine.npz", results.name)
    theirs = evaluate("averaging", TASK, k=2).rank_on(SUITE, **quick)
    same = "has the same embeddings as averaging. "
    assert place.sentence.partition(same)[1:] == (same, theirs.places[0].sentence)


def test_tasks_without_a_score_are_left_out_with_the_reason(averaging: Embeddings) -> None:
    evaluated = evaluate(averaging, "embedded", k=2)
    assert len(evaluated) == 3
    assert "no id of yours has a label in mini_" in evaluated.left_out["mini_clouds"]
    assert evaluated.frame().loc["mini_clouds", "reason"] == evaluated.left_out["mini_clouds"]
    with pytest.raises(ScoreError, match="no score on mini_clouds: no id of yours"):
        evaluated["mini_clouds"]


def test_a_column_of_labels_is_told_loudly(frame: pd.DataFrame) -> None:
    labels = load_task(TASK).labels().frame().iloc[:, 0]
    named = frame.add_prefix("f")
    with pytest.warns(LeakWarning, match=r"column 'label' is the label of olinda_elevation_mean, .*\|r\| = 1.0000"):
        evaluated = evaluate(named.assign(label=2 * labels + 1), TASK, k=2, allow_labels=True)
    assert evaluated.notes[0].startswith(f"yours: {len(list(frame)) + 1} columns (f0, f1, f2, f3 and ")
    assert evaluated.notes[1].startswith("column 'label' is the label")
    evaluated = evaluate(frame.assign(label=labels), TASK, k=2)  # where columns are numbered, no other is a value
    assert evaluated.notes[0] == f"yours: {len(list(frame))} columns (0 to {len(list(frame)) - 1}); not used: label"
    assert not any("label" in note for note in evaluated.notes[1:])
    named = named.assign(target=np.arange(len(frame)) % 7)
    with pytest.warns(LeakWarning, match="column 'target' is taken for a feature, and by its name it may be a label"):
        evaluate(named, TASK, k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(frame, TASK, k=2)


def test_a_mean_that_few_splits_rule_says_so() -> None:
    from neuco_core.scoring.quality import ruled

    assert ruled([0.6] * 12 + [0.61] * 24 + [-1203, -8000, -2000, -5000]) == "4 of 40 splits below -1000; median 0.61"
    assert ruled(list(np.linspace(0.2, 0.8, 40))) == ""
    assert ruled([0.9] * 39 + [0.899]) == ""
    assert ruled([3.0] * 20 + [3.1] * 18 + [4000.0, None]) == "1 of 39 splits above 4000; median 3.00"


@pytest.mark.parametrize(
    ("what", "on", "more", "error", "message"),
    [
        (np.zeros((3, 2)), TASK, {}, UsageError, "an array needs ids: evaluate(array, on, ids=ids); got"),
        (3, TASK, {}, UsageError, "cannot use int as embeddings. Pass a method id, a file"),
        (pd.DataFrame({"0": [1.0]}, index=[["a"], ["b"]]), TASK, {}, UsageError, "expected ids in one level"),
        (Stubborn(), TASK, {"ids": ["a"]}, UsageError, "not an array: no"),
        ("averaging", TASK, {"name": 5}, UsageError, "bad name; expected text, got int"),
        ("averaging", TASK, {"splits": 5}, UsageError, "has 'splits'; expected no parameters. A protocol has fields"),
        ("averagin", TASK, {}, UnknownIdError, "Did you mean 'averaging' or 'averaging_notebook'? A file is known by"),
        ("nowhere.csv", TASK, {}, DataError, "nowhere.csv: no such file"),
        (Path("nowhere.csv"), TASK, {}, DataError, "nowhere.csv: no such file"),
        ("averaging", "olinda_elevation", {}, UnknownIdError, "or 'olinda_elevation_mean'"),
        ("averaging", 3, {}, UsageError, "expected a task, a suite or a dataset, the id of one, or a list of these"),
        ("averaging", [], {}, UsageError, "no task to score on"),
        ("averaging", TASK, {"protocol": 3}, UsageError, "bad protocol; expected a name such as 'ridge'"),
        ("averaging", TASK, {"protocol": "rigde"}, UnknownIdError, "Did you mean 'ridge'"),
        ("averaging", TASK, {"k": 0}, UsageError, "bad k; expected a whole number of at least 1"),
        (((1, 2), np.zeros((2, 2))), TASK, {}, UsageError, "Ids are text"),
        ((("a", "b"), np.zeros((3, 2))), TASK, {}, DataError, "values of the wrong shape"),
        ((("a", "b"), np.eye(2)), TASK, {}, DataError, "got ids such as 'a', and the task has '"),
        ((("a", "b"), [[1.0], [1.0, 2.0]]), TASK, {}, UsageError, "not an array"),
        (pd.DataFrame({"0": [1.0]}), TASK, {}, UsageError, "Put the ids into a column id"),
        (pd.DataFrame({"id": ["a"], "x": ["b"]}), TASK, {}, UsageError, "columns that hold no numbers"),
    ],
)
def test_what_cannot_be_used_is_said(what: Any, on: Any, more: Any, error: type[NeucoError], message: str) -> None:
    with pytest.raises(error) as caught:
        evaluate(what, on, **more)
    assert message in str(caught.value)


def test_score_says_what_it_takes(averaging: Embeddings) -> None:
    for form in ((averaging.values, load_task(TASK)), (averaging, TASK), (averaging, load_task(TASK), 3)):
        with pytest.raises(UsageError, match=r"score: bad .*neuco_core.evaluate\(what, on\) takes ids"):
            score(*form)  # type: ignore[arg-type]


def test_an_encoder_that_fails_keeps_its_own_error() -> None:
    with pytest.raises(NeucoError, match="its encoder failed with ZeroDivisionError") as caught:
        evaluate(lambda batch: 1 / 0, TASK)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_reprs_are_short(results: Results, averaging: Embeddings, root: Path) -> None:
    """Every public object, and every object that a public function gives."""
    labels = load_task(TASK).labels()
    objects: list[Any] = [results, results[TASK], averaging, labels, results.rank_on(SUITE, registry=root / "registry")]
    objects += [make_embeddings(["a"], [[1]])]
    objects += [objects[4].board, objects[4].places[0], neuco.Baseline(method="x", score=1.0, tolerance=0.1)]
    for listed in (neuco.list_tasks, neuco.list_methods, neuco.list_datasets, neuco.list_suites, neuco.list_protocols):
        objects += listed()
    objects += [getattr(neuco, name) for name in neuco.__all__]
    objects += [task.source for task in neuco.list_tasks()]
    source = neuco.load_dataset("mini").cubes()
    objects += [source.read(source.ids()[:2])]
    assert {type(item).__name__ for item in objects} >= {"Task", "Method", "Dataset", "Suite", "Protocol", "Remote"}
    long = {type(item).__name__: len(repr(item)) for item in objects if len(repr(item)) >= LONGEST}
    assert long == {}
    assert TASK in repr(labels)


def test_a_dataset_is_true_whether_its_samples_are_here_or_not(averaging: Embeddings) -> None:
    assert len(neuco.load_dataset("olinda")) == len(averaging)
    assert neuco.load_dataset("ssl4eo_s12_downstream")


def test_progress_is_told_to_a_function(averaging: Embeddings) -> None:
    reports: list[tuple[float, str]] = []
    evaluate(averaging, SUITE, k=3, progress=lambda share, name: reports.append((share, name)))
    assert [name for _, name in reports] == [TASK] * 3 + ["olinda_elevation_std"] * 3 + ["olinda_sea_level"] * 3
    assert reports[-1][0] == pytest.approx(1.0)
    assert json.dumps([share for share, _ in reports]) == json.dumps(sorted(share for share, _ in reports))


def test_embeddings_that_are_all_alike_or_too_long_are_told(averaging: Embeddings) -> None:
    for values, sentence in (
        (np.ones((len(averaging), 3)), "every sample has the same embedding"),
        (np.tile(averaging.values, (1, 1100 // averaging.dim + 1)), "dimensions; NeuCo-Bench allows at most 1024"),
    ):
        with pytest.warns(UserWarning, match=sentence):
            results = evaluate((averaging.ids, values), TASK, k=2, progress=False)
        assert any(sentence in note for note in results.notes)


@pytest.mark.parametrize("load", [neuco.load_task, neuco.load_suite, neuco.load_protocol, neuco.list_tasks])
def test_an_id_that_is_no_text_is_refused(load: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="expected text, got int"):
        load(3)
