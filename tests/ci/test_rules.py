"""Rules for a pull request as a whole: ids, removals, pins and suites are compared with what is true."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.changed import Changes, Touched
from ci.judge import Judge
from ci.plugin_sandbox import PluginData
from ci.report import MOST_FINDINGS, cut
from ci.rules import MOST_PLUGINS, changed_suites, check_pins, check_suites, compare_ids, general, removed
from neuco_core.contract.contract import Finding
from neuco_core.plugins.catalog import load_method, load_task
from neuco_core.records.store import read_all
from neuco_core.specs import Dataset, Method, Suite, Task
from tests.ci.helpers import ROOT, plugin_data, write_file
from tests.ci.test_real_case import HOME, HUB, LABELS, REPOSITORY, SUITE, sha256
from tests.command import python
from tests.fetch.helpers import own_settings
from tests.fetch.hugging_face import HuggingFace

SUITE_PATH = "registry/suites/real.toml"


def plugin(*specs: Dataset | Task | Method) -> PluginData:
    return plugin_data(*specs, folder="neuco_tasks/main", how="kept")


MAIN = [plugin(*map(load_task, LABELS)), plugin(load_method("averaging"), load_method("random"))]


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Main and a pull request, and the hub that both look at."""
    own_settings(tmp_path, monkeypatch)
    trees = tmp_path / "base", tmp_path / "head"
    for tree in trees:
        (tree / SUITE_PATH).parent.mkdir(parents=True)
        (tree / SUITE_PATH).write_text(SUITE)
        pin(tree, biomass_mean=sha256(HUB["labels/biomass_mean__regr.csv"]))
    with HuggingFace(REPOSITORY, HUB) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.base)
        yield trees


def pin(tree: Path, **pins: str) -> None:
    urls = {HOME + f"labels/{LABELS.get(name, name)}": digest for name, digest in pins.items()}
    sizes = {url: len(HUB.get(url.removeprefix(HOME), b"")) for url in urls}
    values = {url: {"sha256": digest, "size": sizes[url]} for url, digest in urls.items()}
    (tree / "registry" / "pins.json").write_text(json.dumps({"pins": values, "schema": 1}))


TRUE = {task: sha256(HUB[f"labels/{file}"]) for task, file in LABELS.items()}


@pytest.mark.parametrize(
    ("pins", "status", "message"),
    [
        ({"biomass_mean": TRUE["biomass_mean"], "crops": TRUE["crops"]}, "ok", "crops: verified, sha256"),
        ({"biomass_mean": TRUE["biomass_mean"], "crops": "1" * 64}, "failed", "not the declared file"),
        ({"biomass_mean": TRUE["biomass_mean"], "other.csv": "1" * 64}, "failed", "no task has this source"),
        ({}, "warning", "biomass_mean: loses its pin"),
        ({"biomass_mean": "bad"}, "failed", "bad pin of hf://"),
    ],
)
def test_a_pin_is_compared_with_the_file(
    pins: dict[str, str], status: str, message: str, trees: tuple[Path, Path]
) -> None:
    pin(trees[1], **pins)
    (finding,) = check_pins(*trees, MAIN)
    assert (finding.check, finding.status) == ("pins", status)
    assert message in finding.detail
    assert str(trees[1]) not in finding.detail


def test_a_pin_of_a_file_in_a_package_is_not_read(trees: tuple[Path, Path]) -> None:
    task = load_task("digits_class")
    pins = {task.source.url: {"sha256": task.source.sha256, "size": task.source.size}}
    (trees[1] / "registry" / "pins.json").write_text(json.dumps({"pins": pins, "schema": 1}))
    details = {finding.status: finding.detail for finding in check_pins(*trees, [*MAIN, plugin(task)])}
    assert "no task has this source" in details["failed"]


def test_a_pin_that_is_replaced_outdates_records(trees: tuple[Path, Path]) -> None:
    pin(trees[0], biomass_mean="1" * 64)
    (finding,) = check_pins(*trees, MAIN)
    assert finding.status == "warning"
    assert "every record of biomass_mean is outdated" in finding.detail


@pytest.mark.parametrize(
    ("edit", "status", "message"),
    [
        ({"size": 1}, "failed", "expected 1 bytes"),
        ({"url": HOME.replace("@main", "@" + "1" * 40) + "labels/biomass_mean__regr.csv"}, "failed", "HTTP 404"),
        ({"url": "hf://datasets/a/b@main/c"}, "failed", "the commit of a pin is of another file"),
        ({"url": HOME + "labels/biomass_mean__regr.csv"}, "ok", "only its size or its commit changes"),
    ],
)
def test_a_pin_of_another_size_or_commit_is_compared_too(
    edit: dict[str, Any], status: str, message: str, trees: tuple[Path, Path]
) -> None:
    """With a size or a commit that is wrong nobody gets the labels, whatever the hash says."""
    path = trees[1] / "registry" / "pins.json"
    content = json.loads(path.read_text())
    for pin in content["pins"].values():
        pin.update(edit)
    path.write_text(json.dumps(content))
    (finding,) = check_pins(*trees, MAIN)
    assert (finding.check, finding.status) == ("pins", status)
    assert message in finding.detail


def test_a_pin_that_nobody_can_verify_now_waits(trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pin(trees[1], biomass_mean=TRUE["biomass_mean"], crops=TRUE["crops"])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (finding,) = check_pins(*trees, MAIN)
    assert (finding.check, finding.status) == ("waiting", "skipped")
    assert "the server cannot be reached" in finding.detail


@pytest.mark.parametrize(
    ("old", "new", "status", "message"),
    [
        ('title = "Real"', 'title = "True"', "ok", "only words"),
        ("crops = 1\n", "", "failed", "it changes under its old version: 'crops' is compared no more"),
        ("crops = 1\n", "mini = 1\n", "failed", "1 task by 2 methods are to be scored: 2 cells"),
        ('title = "Real"', 'title = "Real"\nversion = 2\nkind = "iqm"', "warning", "kind 'neuco' becomes 'iqm'"),
    ],
)
def test_a_suite_says_what_it_will_compare(
    old: str, new: str, status: str, message: str, trees: tuple[Path, Path]
) -> None:
    path = trees[1] / SUITE_PATH
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    (finding,) = changed_suites(*trees, [SUITE_PATH], MAIN)
    assert finding.status == status
    assert message in finding.detail


def test_a_task_of_main_that_cannot_be_asked_is_no_fault_of_others(trees: tuple[Path, Path]) -> None:
    """A suite names it, and did before."""
    left = [plugin(load_method("averaging"))]
    assert any(finding.status == "failed" for finding in check_suites(trees[1] / "registry", left))
    judge = Judge(*trees, "main")
    with judge._temporary:
        judge._compare(Changes("a", "b", core=(SUITE_PATH,)), left, left, [])
    assert [finding.detail for finding in judge.findings if finding.status == "failed"] == []


def test_a_suite_that_goes_is_named(trees: tuple[Path, Path]) -> None:
    (trees[1] / SUITE_PATH).unlink()
    (finding,) = changed_suites(*trees, [SUITE_PATH], MAIN)
    assert finding.status == "warning"
    assert "suite 'real' goes" in finding.detail


def datasets(name: str, *ids: str, how: str = "kept") -> PluginData:
    return plugin_data(*(Dataset(id=spec) for spec in ids), folder=f"neuco_tasks/{name}", how=how)


LAND = datasets("land", "land_cover")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            [LAND, datasets("land-cover", "land-cover", how="added")],
            "dataset 'land_cover' is registered by neuco_tasks/land and as 'land-cover' by neuco_tasks/land-cover",
        ),
        (
            [datasets("land", "land_cover", "land-cover", how="changed")],
            "dataset 'land_cover' is registered by neuco_tasks/land and as 'land-cover' by neuco_tasks/land",
        ),
        (
            [datasets("land", "land-cover", how="changed")],
            "dataset 'land_cover' was registered by neuco_tasks/land and is 'land-cover' now",
        ),
        (
            [datasets("land", how="changed"), datasets("land-cover", "land-cover", how="added")],
            "dataset 'land_cover' moves from neuco_tasks/land to neuco_tasks/land-cover",
        ),
        ([datasets("land", "land_cover", how="changed")], ""),
    ],
)
def test_a_dataset_is_not_taken_by_another_spelling(after: list[PluginData], message: str) -> None:
    assert [f.detail for f in compare_ids([LAND], after)] == ([message] if message else [])


def test_more_plugins_than_anybody_reads_are_refused() -> None:
    many = tuple(Touched("neuco_methods", f"m{i}", "added") for i in range(MOST_PLUGINS + 1))
    assert list(general(Changes("a", "b", many[1:]))) == []
    (finding,) = general(Changes("a", "b", many))
    assert (finding.check, finding.status) == ("plugins", "failed")


def test_findings_beyond_what_a_report_holds_are_counted_and_fail() -> None:
    many = [Finding("a", "b", "ok", "c")] * (MOST_FINDINGS + 5)
    shown = cut(many)
    assert (len(shown), shown[-1].status) == (MOST_FINDINGS, "failed")
    assert "6 more" in shown[-1].detail
    assert cut(many[:3]) == tuple(many[:3])


BRINGS = """
from neuco_core import Dataset, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="{name}", bands=("grey/0",), seasons=("scene",), license="MIT")
"""


def test_whatever_is_wrong_only_with_a_touched_plugin_is_its_problem(tmp_path: Path) -> None:
    """Also if the problem bears another's name, as the first of two spellings does; one of main alone is not its."""
    for name, text in (("zz_ours", BRINGS), ("zz-ours", BRINGS), ("zz_broken", "1 / 0")):
        write_file(f"neuco_tasks/{name}/__init__.py", text.format(name=name))(tmp_path)
    code = "from ci.evaluate import problems; print(*(p.error for p in problems(['neuco_tasks.zz-ours'])), sep='\\n')"
    done = python("-c", code, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"})
    assert done.code == 0, done.err
    (problem,) = done.out.splitlines()
    assert "datasets 'zz-ours' and 'zz_ours' differ only in - and _" in problem


def files(**paths: tuple[str, ...]) -> Changes:
    return Changes("a", "b", **paths)  # type: ignore[arg-type]


PLUGINS = (Touched("neuco_methods", "plain", "added"),)


@pytest.mark.parametrize(
    ("changes", "check", "status", "message"),
    [
        (files(plugins=PLUGINS, core=("neuco_core/errors.py",)), "core", "failed", "1 core files beside plugins"),
        (files(core=("scripts/neuco_tasks/x/evil.py",)), "core", "ok", "with the tests of all plugins"),
        (files(core=("registry/pins.json",)), "core", "ok", "no code changes"),
        (files(other=("docs/new.md",)), "nothing", "ok", "only 1 file outside plugins changed"),
        (files(), "nothing", "failed", "the pull request changes no file"),
        (files(unreadable=(("neuco_tasks/evil", "a link"),)), "unreadable", "failed", "a link"),
        (files(protected=("registry/catalog.json",)), "protected", "failed", "only main writes"),
        (files(bad_names=("neuco_tasks/Böse Task",)), "name", "failed", "is not an id"),
    ],
)
def test_what_is_touched_decides_before_anything_is_run(
    changes: Changes, check: str, status: str, message: str
) -> None:
    (finding, *_) = general(changes)
    assert (finding.check, finding.status, message in finding.detail) == (check, status, True), finding


def test_of_what_is_refused_only_the_first_are_shown() -> None:
    findings = list(general(files(protected=tuple(f"registry/records/{i}" for i in range(30)))))
    assert (len(findings), findings[-1].subject) == (21, "10 more")
    assert {finding.status for finding in findings} == {"failed"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("biomass_mean = 7", "version 7 of task 'biomass_mean'; there is version 1"),
        ("biomass_men = 1", "there is no such task"),
        ("biomass_mean = ", "not a suite"),
        ("biomass_mean = 1", ""),
    ],
)
def test_a_suite_compares_tasks_that_are_there(line: str, message: str, tmp_path: Path) -> None:
    text = f'id = "other"\ntitle = "O"\nprotocol = "ridge"\n\n[tasks]\n{line}\n'
    write_file("suites/other.toml", text)(tmp_path)
    details = [finding.detail for finding in check_suites(tmp_path, MAIN)]
    assert (len(details), message in "".join(details)) == (1 if message else 0, True), details


def test_a_removal_says_what_is_lost_and_a_suite_holds_it_up() -> None:
    records = [r for r in read_all(ROOT / "registry") if r.method == "averaging" and r.task == "digits_class"]
    gone = Touched("neuco_tasks", "main", "removed")
    averaging = plugin(load_method("averaging"))
    suite = Suite(id="real", protocol="ridge", tasks={"digits_class": 1})
    details = {(f.check, f.status): f.detail for f in removed(gone, [averaging], [suite], records)}
    assert "method 'averaging' goes, and 1 record (digits_class) with it" in details["removed", "warning"]
    assert "reconcile --push --withdraw averaging" in details["waiting", "skipped"]
    details = {(f.check, f.status): f.detail for f in removed(gone, [plugin(load_task("digits_class"))], [suite], [])}
    assert details["removed", "failed"] == "suite 'real' compares its task 'digits_class'"
    (finding,) = removed(Touched("neuco_tasks", "other", "removed"), [averaging], [suite], records)
    assert "nothing is lost" in finding.detail
