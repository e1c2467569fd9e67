"""Each point of the contract, kept and broken; and the ways to run it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neuco_core.contract.contract import Broken, all_checks
from neuco_core.contract.metadata import check_citation, check_license
from tests.contract.helpers import COUNT, check, labels, neuco, run_pytest, write_good

Spoil = Callable[[Path], None]


def edit(name: str, old: str, new: str) -> Spoil:
    """Replace some text of a file; it must be there, or the test would test nothing."""

    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        if old not in text:
            raise AssertionError(f"{old!r} is not in {name}")
        (folder / name).write_text(text.replace(old, new))

    return spoil


def write(name: str, text: str) -> Spoil:
    return lambda folder: (folder / name).write_text(text) and None


def new_labels(text: str) -> Spoil:
    """Other labels, properly declared."""

    def spoil(folder: Path) -> None:
        (folder / "neuco_tasks/good/labels.csv").write_text(text)
        path = folder / "neuco_tasks/good/__init__.py"
        digest = hashlib.sha256(text.encode()).hexdigest()
        source = re.sub(r'sha256="\w+", size=\d+', f'sha256="{digest}", size={len(text.encode())}', path.read_text())
        path.write_text(source)

    return spoil


def column(value: Callable[[int], object]) -> str:
    return "\n".join(["id,label", *(f"s{i:03d},{value(i)}" for i in range(COUNT)), ""])


ALONE = {"status": "skipped", "detail": "this is the only task of its dataset", "lacking": False}
TASK, METHOD = "neuco_tasks/good/__init__.py", "neuco_methods/plain/__init__.py"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_good(tmp_path)


def test_a_good_task_and_a_good_method_keep_the_whole_contract(good: Path) -> None:
    findings = check(good, "good", "plain")
    assert ALONE.items() <= findings["task-novelty"].items()
    wanted = {item.id for item in all_checks() if item.noun in ("task", "method")} - {"task-novelty"}
    assert {name for name, row in findings.items() if row["status"] == "ok"} == wanted


def test_a_shipped_dataset_keeps_its_contract(good: Path) -> None:
    findings = check(good, "olinda")
    assert {name: row["status"] for name, row in findings.items()} == {item.id: "ok" for item in all_checks("dataset")}
    assert findings["dataset-images"]["detail"] == "1849 images of 6 bands, 8 × 8 pixels"


@pytest.mark.parametrize(
    ("spoil", "broken", "text"),
    [
        (lambda folder: (folder / "neuco_tasks/good/README.md").unlink(), "task-files", "no card"),
        (write("neuco_tasks/good/README.md", "# another"), "task-files", "does not name the task"),
        (write("neuco_tasks/good/test.py", "# def test_nothing():"), "task-files", "no test"),
        (edit(TASK, "CC-BY-4.0", "Creative Commons"), "task-metadata", "an SPDX expression"),
        (edit(TASK, "10.1234/example", "see our web page"), "task-metadata", "a DOI"),
        (edit(TASK, 'unit="1"', 'unit=""'), "task-metadata", "no unit"),
        (edit(TASK, 'title="Good"', 'title=""'), "task-metadata", "no title"),
        (edit(TASK, 'dataset="good"', 'dataset="goode"'), "task-dataset", "Did you mean 'good'"),
        (edit("neuco_tasks/good/labels.csv", "s001", "s0O1"), "task-source", "sha256"),
        (new_labels(column(lambda i: "nan")), "task-labels", "not finite"),
        (new_labels(column(lambda i: 7)), "task-labels", "constant"),
        (new_labels("\n".join(labels().splitlines()[:60])), "task-samples", "at least 100, got 59"),
        (new_labels(column(lambda i: 1e9 if i == 3 else 0.001 * i)), "task-solvable", "do not solve"),
        (edit(TASK, "score=0.84", "score=0.2"), "task-baseline", "the baseline is not met"),
        (edit(TASK, "baseline=", "#"), "task-baseline", "no baseline for its 150 labels"),
        (edit(TASK, 'method="plain"', 'method="plane"'), "task-baseline", "Did you mean 'plain'"),
        (lambda folder: (folder / "neuco_methods/plain/test.py").unlink(), "method-files", "no test"),
        (edit(METHOD, '"MIT"', '""'), "method-metadata", "no licence"),
        (edit("neuco_tasks/good/cubes.py", "range(150)", "range(148)"), "method-covers", "first missing: s148, s149"),
        (edit(METHOD, "(len(batch.ids), -1)", "(len(batch.ids), -1) * 0"), "method-values", "every value is the same"),
        (edit(METHOD, "(len(batch.ids), -1)", "(len(batch.ids), -1).repeat(80, 1)"), "method-values", "1024"),
        (
            edit(METHOD, "(len(batch.ids), -1)", "(len(batch.ids), -1) / batch.values.std()"),
            "method-deterministic",
            "off",
        ),
    ],
)
def test_a_broken_point_is_found_and_named(good: Path, spoil: Spoil, broken: str, text: str) -> None:
    spoil(good)
    finding = check(good, "good" if broken.startswith("task") else "plain", "--only", broken)[broken]
    assert finding["status"] == "failed", finding
    assert text in finding["detail"]
    assert finding["cure"]


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


def only_good(folder: Path) -> None:
    """A band that no other dataset has, so that the method is run on this one alone."""
    for name in (TASK, METHOD, "neuco_tasks/good/cubes.py"):
        edit(name, "grey/0", "odd/0")(folder)


@pytest.mark.parametrize("name", DISGUISES)
def test_labels_in_disguise_are_found(good: Path, name: str) -> None:
    only_good(good)
    line, status, text = DISGUISES[name]
    body = (
        LABELS_IN + f"        values = batch.values.reshape(len(batch.ids), -1)\n        {line}\n        return values"
    )
    edit(METHOD, "\n        return batch.values.reshape(len(batch.ids), -1)", body)(good)
    if "declared" in name:
        edit(METHOD, 'license="MIT"', 'license="MIT", uses_ids=True')(good)
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
    old = (good / METHOD).read_text()
    start, end = old.index("class Flat:"), old.index("@hookimpl")
    (good / METHOD).write_text(old[:start] + RANK.replace("BY", "self.rows") + "\n\n" + old[end:])
    finding = check(good, "plain", "--only", "method-honest")["method-honest"]
    assert (finding["status"], "other names" in finding["detail"]) == ("failed", True), finding


def statistic(function: str) -> str:
    """Labels that a plain statistic of the image tells exactly."""
    import numpy as np

    images = [np.random.default_rng(i).standard_normal((1, 1, 4, 4)).astype("float32") for i in range(150)]
    values = [float(getattr(image.astype(float), function)()) for image in images]
    return "\n".join(["id,label", *(f"s{i:03d},{value:.6f}" for i, value in enumerate(values)), ""])


@pytest.mark.parametrize("function", ["mean", "std"])
def test_labels_that_anybody_can_see_in_an_image_make_no_method_suspicious(good: Path, function: str) -> None:
    only_good(good)
    new_labels(statistic(function))(good)
    values = "batch.values.reshape(len(batch.ids), -1)"
    plain = f"__import__('numpy').concatenate([{values}, {values}.std(axis=1, keepdims=True)], axis=1)"
    edit(METHOD, f"return {values}", f"return {plain}")(good)
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
    said = neuco(good, "check", "plain")
    assert said.code == 8
    assert "method-covers of plain (essential)" in said.err
    assert "not complete: 2 essential checks could not be made here" in said.err


def noise(seed: int) -> str:
    """Labels that have nothing to do with the images."""
    random = np.random.default_rng(seed)
    return column(lambda i: f"{random.standard_normal():.4f}")


@pytest.mark.parametrize("metric", ["r2", "mae"])
def test_a_task_of_noise_has_no_headroom(good: Path, metric: str) -> None:
    new_labels(noise(7))(good)
    judged_by(metric, 0.0)(good)
    finding = check(good, "good", "--only", "task-headroom")["task-headroom"]
    assert (finding["status"], "nothing beats a guess" in finding["detail"]) == ("failed", True), finding
    assert "band_statistics" in finding["detail"]


@pytest.mark.parametrize("metric", ["r2", "mae"])
def test_a_task_that_a_baseline_solves_has_no_headroom(good: Path, metric: str) -> None:
    new_labels(statistic("sum"))(good)
    judged_by(metric, 1.0)(good)
    finding = check(good, "good", "--only", "task-headroom")["task-headroom"]
    assert (finding["status"], "no room for better methods" in finding["detail"]) == ("warning", True), finding


def test_a_control_needs_no_headroom(good: Path) -> None:
    new_labels(noise(7))(good)
    edit(TASK, 'unit="1"', 'unit="1", control=True')(good)
    finding = check(good, "good")["task-headroom"]
    assert (finding["status"], finding["lacking"]) == ("skipped", False)


def test_a_weak_baseline_alone_is_no_proof_that_nothing_can_be_found(good: Path) -> None:
    """Without images there are no plain statistics, only what the declared method says."""
    new_labels(noise(7))(good)
    edit(TASK, "cubes=cubes, ", "")(good)
    rows = "\n".join(["id,0,1", *(f"s{i:03d},{i % 7},{i % 5}" for i in range(COUNT)), ""])
    (good / "neuco_methods/plain/rows.csv").write_text(rows)
    digest = hashlib.sha256(rows.encode()).hexdigest()
    remote = f'Remote("pkg://neuco_methods.plain/rows.csv", sha256="{digest}")'
    edit(METHOD, "encoder=Flat", f'files={{"good": {remote}}}')(good)
    edit(METHOD, "import Method", "import Method, Remote")(good)
    edit(METHOD, ', bands=("grey/0",)', "")(good)
    finding = check(good, "good", "--only", "task-headroom")["task-headroom"]
    assert (finding["status"], "the only method that could be tried" in finding["detail"]) == ("warning", True), finding


def test_the_same_labels_twice_are_found(good: Path) -> None:
    source = (good / TASK).read_text()
    again = source[source.index("    yield Task(") :].replace('id="good"', 'id="good_twin"')
    (good / TASK).write_text(source + again)
    assert "the same labels as task 'good_twin'" in check(good, "good")["task-novelty"]["detail"]


def test_nearly_the_same_labels_are_a_warning(good: Path) -> None:
    rows = [line.split(",") for line in labels().splitlines()]
    both = [
        f"{name},{value},{value if value == 'label' else float(value) + 0.01 * i}"
        for i, (name, value) in enumerate(rows)
    ]
    new_labels("\n".join(both).replace("label,label", "label,other") + "\n")(good)
    source = (good / TASK).read_text()
    again = source[source.index("    yield Task(") :].replace('id="good"', 'id="good_twin", columns=("other",)')
    (good / TASK).write_text(source + again)
    finding = check(good, "good")["task-novelty"]
    assert finding["status"] == "warning"
    assert "correlates with task 'good_twin'" in finding["detail"]


def judged_by(metric: str, score: float, tolerance: float = 0.1) -> Spoil:
    """The good task with another metric, and a baseline measured with it."""

    def spoil(folder: Path) -> None:
        edit(TASK, 'unit="1"', f'unit="1", metric="{metric}"')(folder)
        edit(TASK, "score=0.84, tolerance=0.05", f"score={score}, tolerance={tolerance}")(folder)

    return spoil


def own_metric(function: str, **settings: object) -> Spoil:
    """A metric of the plugin's own for the good task."""
    more = "".join(f", {key}={value!r}" for key, value in settings.items())
    hook = f"""
@hookimpl
def neuco_metrics():
    from neuco_core import Metric
    yield Metric(id="good_own", function={function}{more})
"""

    def spoil(folder: Path) -> None:
        judged_by("good_own", 0.95)(folder)
        (folder / TASK).write_text((folder / TASK).read_text() + hook)

    return spoil


LOWER = [("mae", 1.336, 0.1), ("mse", 2.77, 0.3), ("r2", 0.84, 0.05)]


@pytest.mark.parametrize(("metric", "score", "tolerance"), LOWER)
def test_any_direction_can_keep_the_whole_contract(good: Path, metric: str, score: float, tolerance: float) -> None:
    judged_by(metric, score, tolerance)(good)
    findings = check(good, "good")
    assert {row["status"] for name, row in findings.items() if name != "task-novelty"} == {"ok"}, findings


@pytest.mark.parametrize("off", [-3, 3])
def test_a_baseline_may_be_missed_on_neither_side(good: Path, off: int) -> None:
    metric, score, tolerance = LOWER[0]
    judged_by(metric, score + off * tolerance, tolerance)(good)
    assert "the baseline is not met" in check(good, "good", "--only", "task-baseline")["task-baseline"]["detail"]


@pytest.mark.parametrize("metric", ["mae", "mse", "r2"])
def test_a_task_that_random_numbers_solve_is_found(good: Path, metric: str) -> None:
    """Labels made of the very numbers that the contract takes as noise."""
    values = np.random.default_rng(1).standard_normal((COUNT, 32))[:, :3].sum(axis=1)
    new_labels(column(lambda i: values[i]))(good)
    judged_by(metric, 1.0)(good)
    detail = check(good, "good", "--only", "task-chance")["task-chance"]["detail"]
    assert "random embeddings solve the task" in detail
    assert ("not below" in detail) == (metric != "r2")


def test_wild_labels_cannot_be_solved_by_squared_error_either(good: Path) -> None:
    new_labels(column(lambda i: 1e9 if i == 3 else 0.001 * i))(good)
    judged_by("mse", 1.0)(good)
    detail = check(good, "good", "--only", "task-solvable")["task-solvable"]["detail"]
    assert "the labels themselves do not solve the task; expected below" in detail


@pytest.mark.parametrize(
    "spoil",
    [
        own_metric("lambda truth, prediction: 0.95"),
        own_metric("lambda truth, prediction: float(abs(truth - prediction).mean())", lower=0.0),  # turned round
    ],
)
def test_a_metric_under_which_nothing_beats_a_guess_is_found(good: Path, spoil: Spoil) -> None:
    spoil(good)
    assert "a perfect answer is no better than a guess" in check(good, "good")["task-chance"]["detail"]


def test_a_loader_that_changes_its_mind_is_found(good: Path) -> None:
    loader = """
def loader(path, calls=[]):
    calls.append(1)
    rows = [line.split(",") for line in path.read_text().split()[1:]]
    values = [float(value) * (1 + len(calls) % 5 * (i % 7)) for i, (_, value) in enumerate(rows)]
    return {"id": [name for name, _ in rows], "label": values}
"""
    edit(TASK, 'unit="1"', 'unit="1", loader=loader')(good)
    (good / TASK).write_text((good / TASK).read_text() + loader)
    assert check(good, "good")["task-repeatable"]["status"] == "failed"


def test_a_loader_that_leaves_has_not_passed(good: Path) -> None:
    edit(TASK, 'unit="1"', 'unit="1", loader=lambda path: exit(0)')(good)
    finding = check(good, "good", "--only", "task-labels")["task-labels"]
    assert (finding["status"], "SystemExit: 0" in finding["detail"]) == ("failed", True)


def test_an_unpinned_source_fails_or_is_allowed_as_a_skip(good: Path) -> None:
    path = good / TASK
    path.write_text(re.sub(r"Remote\(.*\)", 'Remote("https://example.org/labels.csv")', path.read_text()))
    findings = check(good, "good")
    assert findings["task-source"]["status"] == "failed"
    failed = [finding for finding in findings.values() if "unpinned" in finding["detail"]]
    assert not any(finding["cure"] for finding in failed), "the error says what to do; the labels were never seen"
    finding = check(good, "good", "--allow-unpinned")["task-source"]
    assert (finding["status"], "neuco data pin" in finding["detail"], finding["lacking"]) == ("skipped", True, True)


def test_a_path_is_as_good_as_a_name(good: Path) -> None:
    assert check(good, str(good / "neuco_tasks" / "good")).keys() == check(good, "good").keys()


def test_an_older_version_can_be_checked(good: Path) -> None:
    path = good / TASK
    text = path.read_text()
    path.write_text(
        text + "\n\n_first = neuco_tasks\n\n\n@hookimpl\ndef neuco_tasks():\n"
        "    from dataclasses import replace\n    for task in _first():\n"
        "        yield task\n        yield replace(task, version=2, description='')\n"
    )
    old, new = (check(good, name, "--only", "task-metadata")["task-metadata"] for name in ("good@1", "good"))
    assert (old["status"], new["status"]) == ("ok", "failed")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), 2, "names, paths, or --all"),
        (("good", "--all"), 2, "names, paths, or --all"),
        (("goode",), 3, "Did you mean 'good'"),
        (("zzz",), 3, "See `neuco tasks` and `neuco methods`, or give the directory of a plugin"),
        (("",), 2, "names, paths, or --all"),
        (("good", "--only", "task-filez"), 3, "Did you mean 'task-files'"),
    ],
)
def test_a_wrong_use_gets_one_line(good: Path, args: tuple[str, ...], code: int, text: str) -> None:
    done = neuco(good, "check", *args)
    assert (done.code, text in done.err) == (code, True), done.err


def test_a_broken_plugin_cannot_be_checked_and_the_reason_is_given(good: Path) -> None:
    (good / TASK).write_text("raise RuntimeError('cheese')")
    for name in ("good", str(good / "neuco_tasks" / "good")):
        done = neuco(good, "check", name)
        assert (done.code, "RuntimeError: cheese" in done.err) == (5, True), done.err


def test_a_run_in_which_nothing_was_checked_is_a_failure(good: Path) -> None:
    findings = check(good, "plain", "--only", "task-files")
    assert findings == {}


def test_the_help_lists_exactly_what_is_run(good: Path) -> None:
    text = neuco(good, "check", "--help").out
    listed = re.findall(r"^  ((?:task|method|dataset|submission)-\w+) ", text, re.MULTILINE)
    assert listed == [item.id for item in all_checks()]
    plugins = {name for name in listed if not name.startswith("submission-")}  # which are no plugins
    assert plugins == set(check(good, "good", "plain", "olinda"))


def test_contract_gives_one_test_for_each_check(good: Path) -> None:
    file = good / "neuco_tasks" / "good" / "test.py"
    file.write_text('from neuco_core.testing import contract\n\ntest_contract = contract("task", "good")\n')
    (good / "neuco_tasks" / "good" / "README.md").unlink()
    done = run_pytest(good, file)
    assert f"1 failed, {len(all_checks('task')) - 2} passed, 1 skipped" in done.out
    assert "cure: write README.md and test.py" in done.out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--neuco", "plain"), 1, ("1 failed, 5 passed", "cure: write README.md")),
        (("--neuco", "goode"), 4, ("no task or method 'goode'",)),
    ],
)
def test_the_pytest_plugin_needs_no_file(good: Path, args: tuple[str, ...], code: int, words: tuple[str, ...]) -> None:
    (good / "neuco_methods" / "plain" / "README.md").unlink()
    (good / "empty").mkdir()
    done = run_pytest(good, good / "empty", *args)
    assert done.code == code, done.text
    assert all(word in done.text for word in words), done.out


def test_no_evidence_is_seen_in_pytest_and_turns_no_test_red(good: Path) -> None:
    only_good(good)
    (good / "neuco_tasks/good/labels.csv").unlink()
    file = good / "neuco_methods" / "plain" / "test.py"
    file.write_text('from neuco_core.testing import contract\n\ntest_contract = contract("method", "plain")\n')
    done = run_pytest(good, file, "-rs")
    assert (done.code, "4 passed, 2 skipped" in done.out) == (0, True), done.out
    assert done.out.count("no evidence for an essential check: no ") == 2
    (good / "empty").mkdir()
    asked = run_pytest(good, good / "empty", "--neuco", "plain")
    assert (asked.code, "4 passed, 2 skipped" in asked.out) == (8, True), asked.out


@pytest.mark.parametrize("text", ["MIT", "CC-BY-4.0", "Apache-2.0 OR MIT"])
def test_licences_that_tools_know_are_taken(text: str) -> None:
    assert check_license(text) == text


@pytest.mark.parametrize("text", ["", "cc-by-4.0", "free", "MIT and others"])
def test_other_licences_are_refused(text: str) -> None:
    with pytest.raises(Broken, match="licence"):
        check_license(text)


@pytest.mark.parametrize(
    "text",
    [
        "10.5281/zenodo.123",
        "Vinge and others (2025), arXiv:2510.17914",
        "@misc{x, title={A {Nested} title, with commas}, year=2025}",
        '@article{y:1, author = "A and B", title = "T", year = "2020",}',
    ],
)
def test_citations_that_can_be_followed_are_taken(text: str) -> None:
    assert check_citation(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the paper",
        "@misc{x}",
        "@misc{x, title={A}}",
        "@misc{x, title={A, year=2025}",
        "@misc{x, =, year=2025}",
        "10.1/x",
    ],
)
def test_other_citations_are_refused(text: str) -> None:
    with pytest.raises(Broken):
        check_citation(text)
