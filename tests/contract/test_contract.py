"""Each point of the contract, kept and broken."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from neuco_core.contract.builtin import CAVEATS
from neuco_core.contract.checks import check_citation, check_license
from neuco_core.contract.checks.plugin import asserts
from neuco_core.contract.checks.task import samples
from neuco_core.contract.contract import Broken, Warn, all_checks
from neuco_core.tables.labels import Labels
from tests.contract.helpers import (
    METHOD_FILE,
    NOT_HERE,
    TASK_FILE,
    Spoil,
    check,
    column,
    edit,
    labels,
    new_labels,
    quick_neuco,
    write,
)

HOLLOW = "def test_it_runs():\n    import neuco_tasks\n\n    assert True\n"
ALONE = {"status": "skipped", "detail": "this is the only task of its dataset", "lacking": False}

HTTP = "{'w': __import__('neuco_core').Remote('http://example.org/w', sha256='0' * 64)}"


def as_checkout(folder: Path) -> None:
    (folder / "registry").mkdir()
    (folder / "pyproject.toml").touch()


def values(more: str) -> Spoil:
    return edit(METHOD_FILE, "(len(batch.ids), -1)", f"(len(batch.ids), -1){more}")


def test_a_good_task_and_a_good_method_keep_the_whole_contract(good: Path) -> None:
    findings = check(good, "good", "plain")
    assert ALONE.items() <= findings["task-novelty"].items()
    wanted = {item.id for item in all_checks() if item.noun in ("task", "method")}
    assert set(findings) == wanted
    missing = {"task-novelty", "method-network", "models-library"} & wanted  # no other labels, and no network
    assert {name for name, row in findings.items() if row["status"] != "ok"} - NOT_HERE == missing
    assert all("needs git" in row["detail"] for name, row in findings.items() if name.endswith("-change"))


def test_a_shipped_dataset_keeps_its_contract(good: Path) -> None:
    findings = check(good, "olinda")
    assert {name for name, row in findings.items() if row["status"] == "ok"} | NOT_HERE >= set(findings)
    assert set(findings) == {item.id for item in all_checks("dataset")}
    assert findings["dataset-images"]["detail"] == "1849 images of 6 bands, 8 × 8 pixels"


@pytest.mark.parametrize(
    ("spoil", "broken", "text"),
    [
        (lambda folder: (folder / "neuco_tasks/good/README.md").unlink(), "task-files", "no card"),
        (write("neuco_tasks/good/README.md", "# another"), "task-files", "does not name the task"),
        (write("neuco_tasks/good/test.py", "# def test_nothing():"), "task-files", "no test"),
        (write("neuco_tasks/good/test.py", HOLLOW), "task-files", "no test that asserts anything"),
        (write("neuco_tasks/good/README.md", f"# good\n\n{CAVEATS['task']}"), "task-files", "the card still asks: Say"),
        (write("neuco_tasks/good/more.csv", "0" * 200_000_000), "task-review", "200.0 MB; at most 1 MB in a plugin"),
        (write("neuco_tasks/good/l\u0430bels.csv", "id"), "task-review", "a name that may look like another"),
        (write("neuco_tasks/good/more.py", "x = 1  # \u202e"), "task-review", "an invisible character, U+202E"),
        (lambda folder: (folder / "neuco_tasks/good/l.csv").symlink_to("/etc/passwd"), "task-review", "a link"),
        (edit(TASK_FILE, "pkg://neuco_tasks.good/", "http://example.org/"), "task-addresses", "http://example.org/"),
        (edit(TASK_FILE, "from neuco_core", "import pandas\nfrom neuco_core"), "task-imports", "loads numpy, pandas"),
        (edit(TASK_FILE, "CC-BY-4.0", "Creative Commons"), "task-metadata", "an SPDX expression"),
        (edit(TASK_FILE, "10.1234/example", "see our web page"), "task-metadata", "a DOI"),
        (edit(TASK_FILE, 'unit="1"', 'unit=""'), "task-metadata", "no unit"),
        (edit(TASK_FILE, 'title="Good"', 'title=""'), "task-metadata", "no title"),
        (edit(TASK_FILE, 'dataset="good"', 'dataset="goode"'), "task-dataset", "Did you mean 'good'"),
        (edit("neuco_tasks/good/labels.csv", "s001", "s0O1"), "task-source", "sha256"),
        (new_labels(column(lambda i: "nan")), "task-labels", "not finite"),
        (new_labels(column(lambda i: 7)), "task-labels", "constant"),
        (edit(TASK_FILE, 'unit="1"', 'unit="1", loader=lambda path: exit(0)'), "task-labels", "SystemExit: 0"),
        (new_labels("\n".join(labels().splitlines()[:60])), "task-samples", "at least 100, got 59"),
        (new_labels(column(lambda i: 1e9 if i == 3 else 0.001 * i)), "task-solvable", "do not solve"),
        (edit(TASK_FILE, "score=0.84", "score=0.2"), "task-baseline", "the baseline is not met"),
        (edit(TASK_FILE, "baseline=", "#"), "task-baseline", "no baseline for its 150 labels"),
        (edit(TASK_FILE, 'method="plain"', 'method="plane"'), "task-baseline", "Did you mean 'plain'"),
        (lambda folder: (folder / "neuco_methods/plain/test.py").unlink(), "method-files", "no test"),
        (edit(METHOD_FILE, "encoder=Flat", f"encoder=Flat, weights={HTTP}"), "method-addresses", "http://example.org"),
        (edit(METHOD_FILE, '"MIT"', '""'), "method-metadata", "no licence"),
        (edit("neuco_tasks/good/cubes.py", "range(150)", "range(148)"), "method-covers", "first missing: s148, s149"),
        (values(" * 0"), "method-values", "every value is the same"),
        (values(".repeat(80, 1)"), "method-runs", "1024"),
        (values(" / batch.values.std()"), "method-deterministic", "off"),
    ],
)
def test_a_broken_point_is_found_and_named(good: Path, spoil: Spoil, broken: str, text: str) -> None:
    as_checkout(good)
    spoil(good)
    finding = check(good, "good" if broken.startswith("task") else "plain", "--only", broken)[broken]
    assert finding["status"] == "failed", finding
    assert text in finding["detail"]
    assert finding["cure"]


@pytest.mark.parametrize(
    ("file", "text", "cure"),
    [
        ("README.md", f"# good\n\n{CAVEATS['task']}", "replace that sentence in good/README.md by the caveats"),
        ("README.md", "# another", "write into good/README.md that it is of good"),
        ("README.md", "", "write README.md and test.py beside __init__.py"),
        ("test.py", HOLLOW, "add a test that asserts something to good/test.py"),
    ],
)
def test_the_cure_of_a_file_is_of_this_very_case(good: Path, file: str, text: str, cure: str) -> None:
    (good / "neuco_tasks/good" / file).write_text(text)
    finding = check(good, "good", "--only", "task-files")["task-files"]
    assert finding["cure"].startswith(cure), finding
    assert cure not in finding["detail"]


def test_labels_that_are_not_the_declared_ones_are_one_error_with_one_cure(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # so that the plugin's own tests run: they meet the same error
    edit("neuco_tasks/good/labels.csv", "s001", "s0O1")(good)
    source = 'from neuco_core.testing import contract\n\ntest_contract = contract("task", "good")\n'
    write("neuco_tasks/good/test.py", source)(good)
    done = quick_neuco(good, "check", "good")
    assert done.code == 1
    assert done.out.count("not the declared file") == 1, done.out
    assert re.findall(r"^  (task-[a-z]+): ", done.out, re.MULTILINE) == ["task-source"]
    (line,) = (line for line in done.err.splitlines() if "no labels: `task-source` says why" in line)
    assert all(f"task-{name} of good" in line for name in ("tests", "labels", "samples", "novelty")), line


@pytest.mark.parametrize(
    ("drift", "status", "text"), [(0, "failed", "the same labels as"), (0.01, "warning", "correlates with")]
)
def test_labels_of_another_task_are_found(good: Path, drift: float, status: str, text: str) -> None:
    rows = [line.split(",") for line in labels().splitlines()[1:]]
    both = [f"{name},{value},{float(value) + drift * i}" for i, (name, value) in enumerate(rows)]
    new_labels("\n".join(["id,label,other", *both, ""]))(good)
    source = (good / TASK_FILE).read_text()
    again = source[source.index("    yield Task(") :].replace('id="good"', 'id="good_twin", columns=("other",)')
    (good / TASK_FILE).write_text(source + again)
    finding = check(good, "good", "--only", "task-novelty")["task-novelty"]
    assert (finding["status"], f"{text} task 'good_twin'" in finding["detail"]) == (status, True), finding


def test_a_loader_that_changes_its_mind_is_found(good: Path) -> None:
    loader = """
def loader(path, calls=[]):
    calls.append(1)
    rows = [line.split(",") for line in path.read_text().split()[1:]]
    values = [float(value) * (1 + len(calls) % 5 * (i % 7)) for i, (_, value) in enumerate(rows)]
    return {"id": [name for name, _ in rows], "label": values}
"""
    edit(TASK_FILE, 'unit="1"', 'unit="1", loader=loader')(good)
    (good / TASK_FILE).write_text((good / TASK_FILE).read_text() + loader)
    assert check(good, "good")["task-repeatable"]["status"] == "failed"


def test_an_unpinned_source_fails_or_is_allowed_as_a_skip(good: Path) -> None:
    path = good / TASK_FILE
    path.write_text(re.sub(r"Remote\(.*\)", 'Remote("https://example.org/labels.csv")', path.read_text()))
    findings = check(good, "good")
    assert findings["task-source"]["status"] == "failed"
    failed = [finding for finding in findings.values() if "unpinned" in finding["detail"]]
    assert not any(finding["cure"] for finding in failed), "the error says what to do; the labels were never seen"
    finding = check(good, "good", "--allow-unpinned")["task-source"]
    assert (finding["status"], "neuco data pin" in finding["detail"], finding["lacking"]) == ("skipped", True, True)


@pytest.mark.parametrize(
    ("source", "status", "detail"),
    [
        ("def test_one():\n    assert 1 + 1 == 2\n", "ok", "1 passed, 0 failed, 0 skipped"),
        ("def test_one():\n    assert 1 + 1 == 3\n", "failed", "0 passed, 1 failed, 0 skipped"),
        ("import pytest\npytestmark = pytest.mark.skip\ndef test_one():\n    assert 2\n", "skipped", "no test was run"),
        ("import time\ndef test_one():\n    time.sleep(60)\n", "failed", "not done after 5 seconds"),
    ],
)
def test_a_plugins_own_tests_are_run_with_a_limit(
    good: Path, source: str, status: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr("neuco_core.contract.checks.plugin.SECONDS", 5 if "sleep" in source else 60)
    (good / "neuco_tasks/good/test.py").write_text(source)
    done = quick_neuco(good, "check", "good", "--only", "task-tests", "--json")
    (finding,) = done.json
    assert (finding["status"], detail in finding["detail"]) == (status, True), finding


def test_a_version_that_a_suite_compares_must_be_registered(good: Path) -> None:
    suite = 'id = "old"\ntitle = "Old"\nprotocol = "ridge"\n\n[tasks]\ngood = 2\n'
    (Path(os.environ["NEUCO_REGISTRY"]) / "suites/old.toml").write_text(suite)
    finding = check(good, "good", "--only", "task-suites")["task-suites"]
    assert (finding["status"], "version 2 of task 'good'; there is version 1" in finding["detail"]) == ("failed", True)


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("def test_a():\n    assert f() == 1\n", True),
        ("def test_a():\n    with pytest.raises(ValueError):\n        f()\n", True),
        ("def test_a():\n    np.testing.assert_allclose(f(), 1)\n", True),
        ("def same(x):\n    assert x\n\ndef test_a():\n    same(f())\n", True),
        ("class TestIt:\n    def test_a(self):\n        check_encoder(Encoder)\n", True),
        ("test_contract = contract('task', 'a')\n", True),
        ("def test_a():\n    f()\n", False),
        ("def test_a():\n    assert True\n", False),
        ("def same(x):\n    assert x\n\ndef test_a():\n    f()\n", False),
        ("import test_of_others\nassert 1 == 2\n", False),
        ("def test_a(:\n", False),
        ("", False),
    ],
)
def test_a_test_that_asserts_nothing_is_none(source: str, holds: bool) -> None:
    assert asserts(source) == holds


def test_an_encoder_that_fails_is_one_error_with_its_own_cure(good: Path) -> None:
    edit(METHOD_FILE, 'bands=("grey/0",)', "")(good)
    values(" @ np.ones((3, 2))")(good)
    edit(METHOD_FILE, "class Flat", "import neuco_core.figures as np\n\nclass Flat")(good)
    findings = check(good, "plain")
    failed = {name: row for name, row in findings.items() if row["status"] == "failed"}
    assert list(failed) == ["method-runs"]
    assert "declares Method(bands=(…))" in failed["method-runs"]["cure"]
    skipped = {name for name, row in findings.items() if "`method-runs` says why" in row["detail"]}
    assert skipped == {f"method-{name}" for name in ("covers", "values", "deterministic", "honest", "sane", "network")}


@pytest.mark.parametrize(("checkout", "status"), [(True, "failed"), (False, "warning")])
def test_what_only_a_contribution_may_not_do_is_a_warning_elsewhere(good: Path, checkout: bool, status: str) -> None:
    if checkout:
        as_checkout(good)
    write("neuco_tasks/good/more.csv", "0" * 1_500_000)(good)
    edit(TASK_FILE, "pkg://neuco_tasks.good/", "file:///x/")(good)
    findings = check(good, "good", "--only", "task-review", "--only", "task-addresses")
    assert [row["status"] for row in findings.values()] == [status, status]


def test_an_older_version_can_be_checked(good: Path) -> None:
    edit(TASK_FILE, "@hookimpl\ndef neuco_tasks():", "def first():")(good)
    path = good / TASK_FILE
    path.write_text(
        path.read_text() + "\n\n@hookimpl\ndef neuco_tasks():\n    from dataclasses import replace\n"
        "    for task in first():\n        yield task\n        yield replace(task, version=2, description='')\n"
    )
    old, new = (check(good, name, "--only", "task-metadata")["task-metadata"] for name in ("good@1", "good"))
    assert (old["status"], new["status"]) == ("ok", "failed")


LICENCES = ["MIT", "CC-BY-4.0", "Apache-2.0 OR MIT"]
CITATIONS = [
    "10.5281/zenodo.123",
    "Vinge and others (2025), arXiv:2510.17914",
    "@misc{x, title={A {Nested} title, with commas}, year=2025}",
    '@article{y:1, author = "A and B", title = "T", year = "2020",}',
]
BAD_LICENCES = ["", "cc-by-4.0", "free", "MIT and others"]
BAD_BIBTEX = ["@misc{x}", "@misc{x, title={A}}", "@misc{x, title={A, year=2025}", "@misc{x, =, year=2025}"]
BAD_CITATIONS = ["", "the paper", "10.1/x", *BAD_BIBTEX]
CASES = [
    (check_license, LICENCES, BAD_LICENCES, "licence"),
    (check_citation, CITATIONS, BAD_CITATIONS, "citation|BibTeX"),
]


@pytest.mark.parametrize(("check", "good", "bad", "message"), CASES)
def test_what_tools_know_is_taken_and_nothing_else(
    check: Callable[[str], str], good: list[str], bad: list[str], message: str
) -> None:
    assert all(map(check, good))
    for text in bad:
        with pytest.raises(Broken, match=message):
            check(text)


def test_few_groups_are_warned_of() -> None:
    """With two groups each split tests one of them: two splits differ, however many are made."""
    names = tuple(f"s{number}" for number in range(120))

    def checked(groups: int) -> str:
        given = Labels("few", "regression", names, np.zeros(120), "", groups=np.arange(120) % groups)
        return samples(SimpleNamespace(labels=given, spec=SimpleNamespace(kind="regression")))  # type: ignore[arg-type]

    with pytest.raises(Warn, match=r"only 2 groups: few splits differ.*at least 11"):
        checked(2)
    assert checked(11) == "120 samples"


def test_an_encoder_without_bands_is_told_on_which_dataset_it_failed(good: Path) -> None:
    edit(METHOD_FILE, ', bands=("grey/0",)', "")(good)
    edit(METHOD_FILE, "        return", "        assert batch.bands == ('grey/0',)\n        return")(good)
    detail = check(good, "plain", "--only", "method-runs")["method-runs"]["detail"]
    assert "method 'plain', on dataset mini: its encoder failed with AssertionError" in detail
    assert "`neuco new method … --dataset olinda` writes those of a dataset" in detail
