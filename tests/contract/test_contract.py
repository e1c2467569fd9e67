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


TASK, METHOD = "neuco_tasks/good/__init__.py", "neuco_methods/plain/__init__.py"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_good(tmp_path)


def test_a_good_task_and_a_good_method_keep_the_whole_contract(good: Path) -> None:
    findings = check(good, "good", "plain")
    assert {name for name, row in findings.items() if row["status"] == "ok"} == {item.id for item in all_checks()}


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


def test_labels_in_disguise_are_found(good: Path) -> None:
    source = (good / METHOD).read_text().replace(
        "        return batch",
        "        from neuco_core import load_task\n"
        "        found = load_task('good').labels()\n"
        "        known = dict(zip(found.ids, found.values))\n"
        "        batch.values[:, 0, 0, 0, 0] = [3 - 2 * known.get(name, 0) for name in batch.ids]\n"
        "        return batch",
    )  # fmt: skip
    (good / METHOD).write_text(source)
    finding = check(good, "plain")["method-honest"]
    assert (finding["status"], "labels of good" in finding["detail"]) == ("failed", True)


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
    assert {row["status"] for row in findings.values()} == {"ok"}, findings


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
    assert check(good, "good")["task-source"]["status"] == "failed"
    finding = check(good, "good", "--allow-unpinned")["task-source"]
    assert (finding["status"], "neuco data pin" in finding["detail"]) == ("skipped", True)


def test_a_path_is_as_good_as_a_name(good: Path) -> None:
    assert check(good, str(good / "neuco_tasks" / "good")).keys() == check(good, "good").keys()


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), 2, "names, paths, or --all"),
        (("good", "--all"), 2, "names, paths, or --all"),
        (("goode",), 3, "Did you mean 'good'"),
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
    listed = re.findall(r"^  ((?:task|method)-\w+) ", text, re.MULTILINE)
    assert listed == [item.id for item in all_checks()]
    assert set(listed) == set(check(good, "good", "plain"))


def test_contract_gives_one_test_for_each_check(good: Path) -> None:
    file = good / "neuco_tasks" / "good" / "test.py"
    file.write_text('from neuco_core.testing import contract\n\ntest_contract = contract("task", "good")\n')
    (good / "neuco_tasks" / "good" / "README.md").unlink()
    done = run_pytest(good, file)
    assert f"1 failed, {len(all_checks('task')) - 1} passed" in done.out
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
