"""Pins and suites in a pull request: each is compared with what is true, and the report says what it will cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.changed import Touched
from ci.plugin_sandbox import PluginData
from ci.rules import changed_suites, check_pins
from ci.stub_tree import FUNCTIONS
from neuco_core.plugins.catalog import load_method, load_task
from neuco_core.specs import Dataset, Method, Task, to_json
from tests.ci.hugging_face import HuggingFace
from tests.ci.real_case import HOME, LABELS, REPOSITORY, SUITE, files_of_the_hub, sha256
from tests.fetch.helpers import own_settings

HUB = files_of_the_hub()
SUITE_PATH = "registry/suites/real.toml"


def plugin(*specs: Dataset | Task | Method) -> PluginData:
    rows = []
    for spec in specs:
        fields = {key: bool(value) if key in FUNCTIONS else value for key, value in to_json(spec).items()}
        rows.append({"noun": type(spec).__name__.lower(), "spec": fields, "code": "x"})
    return PluginData(Touched("neuco_tasks", "main", "kept"), Path(), Path(), rows=rows)


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
    with HuggingFace(REPOSITORY, dict(HUB)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.hub.address)
        yield trees


def pin(tree: Path, **pins: str) -> None:
    urls = {HOME + f"labels/{LABELS.get(name, name)}": digest for name, digest in pins.items()}
    sizes = {url: len(HUB.get(url.removeprefix(HOME), b"")) for url in urls}
    values = {url: {"sha256": digest, "size": sizes[url]} for url, digest in urls.items()}
    (tree / "registry" / "pins.json").write_text(json.dumps({"pins": values, "schema": 1}))


TRUE = {task: sha256(HUB[f"labels/{file}"]) for task, file in LABELS.items()}


@pytest.mark.parametrize(
    ("pins", "status", "words"),
    [
        ({"biomass_mean": TRUE["biomass_mean"], "crops": TRUE["crops"]}, "ok", "crops: verified, sha256"),
        ({"biomass_mean": TRUE["biomass_mean"], "crops": "1" * 64}, "failed", "not the declared file"),
        ({"biomass_mean": TRUE["biomass_mean"], "other.csv": "1" * 64}, "failed", "no task has this source"),
        ({}, "warning", "biomass_mean: loses its pin"),
        ({"biomass_mean": "bad"}, "failed", "bad pin of hf://"),
    ],
)
def test_a_pin_is_compared_with_the_file(
    pins: dict[str, str], status: str, words: str, trees: tuple[Path, Path]
) -> None:
    pin(trees[1], **pins)
    (finding,) = check_pins(*trees, MAIN)
    assert (finding.check, finding.status) == ("pins", status)
    assert words in finding.detail
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


def test_a_pin_that_nobody_can_verify_now_waits(trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pin(trees[1], biomass_mean=TRUE["biomass_mean"], crops=TRUE["crops"])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (finding,) = check_pins(*trees, MAIN)
    assert (finding.check, finding.status) == ("waiting", "skipped")
    assert "the server cannot be reached" in finding.detail


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ('title = "Real"', 'title = "True"', "ok", "only words"),
        ("crops = 1\n", "", "failed", "it changes under its old version: 'crops' is compared no more"),
        ("crops = 1\n", "mini = 1\n", "failed", "1 task by 2 methods are to be scored: 2 cells"),
        ('title = "Real"', 'title = "Real"\nversion = 2\nkind = "iqm"', "warning", "kind 'neuco' becomes 'iqm'"),
    ],
)
def test_a_suite_says_what_it_will_compare(
    old: str, new: str, status: str, words: str, trees: tuple[Path, Path]
) -> None:
    path = trees[1] / SUITE_PATH
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    (finding,) = changed_suites(*trees, [SUITE_PATH], MAIN)
    assert finding.status == status
    assert words in finding.detail


def test_a_suite_that_goes_is_named(trees: tuple[Path, Path]) -> None:
    (trees[1] / SUITE_PATH).unlink()
    (finding,) = changed_suites(*trees, [SUITE_PATH], MAIN)
    assert finding.status == "warning"
    assert "suite 'real' goes" in finding.detail
