"""What ships: cards, hooks, suites and labels, the same on every machine and wherever they come from."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuco_core import (
    Task,
    list_datasets,
    list_methods,
    list_suites,
    list_tasks,
    load_dataset,
    load_method,
    load_protocol,
    load_suite,
    load_task,
    score,
)
from neuco_core.contract.contract import run_check
from neuco_core.contract.metric_scale import NO_HEADROOM, measure_baseline, shuffled
from neuco_core.contract.subjects import MethodSubject
from neuco_core.fetch.fetch import resolve
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Check
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels
from tests.command import python
from tests.content.tables import PAGES, in_tree
from tests.fetch.http_server import FileServer

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(
    path.parent for package in ("tasks", "methods") for path in ROOT.glob(f"neuco_{package}/*/__init__.py")
)
PARTS = ("**What.**", "**Source.**", "**Licence.**", "**Caveats.**", "**Citation.**")
# The columns of Table 4 of the NeuCo-Bench paper.
RANKED = {
    "biomass_mean",
    "biomass_std",
    "clouds",
    "crops",
    "heatisland_mean",
    "heatisland_std",
    "landcover_agriculture",
    "landcover_forest",
}
# In a process whose processor seems to lack vector instructions, mini must be the same to the last bit.
PROGRAM = """
import hashlib
from neuco_tasks.mini.cubes import cube
from neuco_tasks.mini.labels import label_text
digest = hashlib.sha256(label_text("heatisland").encode())
for index in range(0, 1200, 100):
    digest.update(cube(index).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.parametrize("plugin", PLUGINS, ids=[f"{path.parent.name}/{path.name}" for path in PLUGINS])
def test_a_plugin_has_a_whole_card_and_tests_that_assert_something(plugin: Path) -> None:
    text = (plugin / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {plugin.name}\n")
    assert [part for part in PARTS if part not in text] == []
    tree = ast.parse((plugin / "test.py").read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert len(tests) >= 3 or any("contract(" in ast.unparse(n) for n in tree.body if isinstance(n, ast.Assign))
    assert all(any(isinstance(node, ast.Assert | ast.With) for node in ast.walk(test)) for test in tests)


@pytest.mark.parametrize("page", PAGES)
def test_documented_table_is_up_to_date(page: str) -> None:
    """If this fails: `python -m tests.content.tables docs`."""
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == PAGES[page]()


def test_every_plugin_is_in_a_table_with_a_card_that_is_there() -> None:
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
    for spec in (*in_tree(list_datasets()), *in_tree(list_tasks()), *in_tree(list_methods())):
        assert f"[`{spec.id}`](" in text
    for plugin in PLUGINS:
        assert f"](../../{plugin.parent.name}/{plugin.name}/README.md)" in text


def test_every_folder_gives_methods_named_after_it() -> None:
    methods = [method for method in list_methods() if method.origin and "neuco_methods" in method.origin.source]
    folders = {path.name for path in PLUGINS if path.parent.name == "neuco_methods"}
    owners = {
        method.id: [f for f in folders if method.id == f or method.id.startswith((f"{f}_", f"{f}-"))]
        for method in methods
    }
    assert all(owners.values()), owners
    assert {folder for owner in owners.values() for folder in owner} == folders


def test_an_encoder_can_be_tried_without_pytest_and_the_contract() -> None:
    code = "import sys; from neuco_core.testing import TinyCubes, check_encoder, contract; print(*sys.modules)"
    modules = set(python("-c", code).out.split())
    assert "neuco_core.testing" in modules
    assert modules & {"pytest", "torch", "neuco_core.contract.contract"} == set()


def test_hooks_can_be_called_again_after_an_encoder_was_made() -> None:
    # A function named like the module beside it would be replaced by that module at its first import.
    import neuco_methods.averaging as plugin

    for _ in range(2):
        for method in plugin.neuco_methods():
            assert method.encoder is not None
            assert hasattr(method.encoder(**method.params), "encode")


def test_every_suite_names_tasks_and_a_protocol_that_are_there() -> None:
    suites = list_suites()
    assert {suite.id for suite in suites} >= {"embedded", "mini", "neuco-real", "olinda", "olinda-blocks"}
    for suite in suites:
        assert catalog().suite_tasks(suite)
        assert load_protocol(suite.protocol).name == suite.protocol
        assert suite.title
        assert suite.description
        assert not [name for name in suite.tasks if load_task(name).control], "controls are never ranked"


def test_ranks_what_the_paper_ranks() -> None:
    assert set(load_suite("neuco-real").tasks) == RANKED
    assert set(load_suite("mini").tasks) == {f"mini_{name}" for name in RANKED}


def test_embedded_is_all_that_works_offline_and_is_worth_ranking() -> None:
    offline = {
        task.id for task in list_tasks() if task.source.url.startswith("pkg://neuco_tasks.") and not task.control
    }
    assert set(load_suite("embedded").tasks) == offline - {"mini_nodata"}


def test_blocks_are_left_out_whole() -> None:
    blocks = load_suite("olinda-blocks")
    assert load_protocol(blocks.protocol).splitter == "group"
    assert all(load_task(name).group_column == "block" for name in blocks.tasks)


def test_baselines_of_embedded_tasks_use_the_protocol_of_their_suite() -> None:
    for name in load_suite("embedded").tasks:
        baseline = load_task(name).baseline
        assert baseline is not None
        assert baseline.protocol == load_suite("embedded").protocol


def digest_of_mini(**env: str) -> str:
    done = python("-c", PROGRAM, env=env)
    assert (done.code, len(done.out)) == (0, 65), done.err
    return done.out


def test_vector_instructions_do_not_change_a_bit() -> None:
    from numpy._core import _multiarray_umath as umath

    present = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    if not present:
        # Justified: numpy was built for, or runs on, a processor without any, so there is nothing to switch off.
        pytest.skip("numpy uses no optional instructions here")
    assert digest_of_mini() == digest_of_mini(NPY_DISABLE_CPU_FEATURES=" ".join(present))


def test_labels_that_are_elsewhere_are_those_of_their_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    task = load_task("digits_even")
    assert task.source.url.startswith("https://")
    assert task.source.pinned
    assert task.loader
    (mirror,) = task.source.mirrors
    with FileServer() as server:
        server.http.files["/digits.csv.gz"] = resolve(mirror).read_bytes()
        there = replace(task, source=replace(task.source, url=f"{server.base}/digits.csv.gz", mirrors=())).labels()
        assert [path for path, _ in server.http.requests] == ["/digits.csv.gz"]
    assert (there.sha256, there.verified, len(there)) == (task.labels().sha256, True, 1797)


def test_the_file_holds_waves_of_row_and_column() -> None:
    rows, columns = np.divmod(np.arange(1849), 43)
    down, across = (np.cos(np.pi * np.outer(place + 0.5, np.arange(8)) / 43) for place in (rows, columns))
    waves = (down[:, :, None] * across[:, None, :]).reshape(1849, 64)[:, 1:]
    embeddings = load_method("position").embeddings("olinda")
    assert embeddings.ids == load_dataset("olinda").ids()
    assert np.abs(embeddings.values - waves).max() <= 1 / 512


def test_random_splits_reward_it_and_blocks_with_a_margin_hardly_do() -> None:
    embeddings, task = load_method("position").embeddings("olinda"), load_task("olinda_elevation_std")
    by_chance, by_block = (score(embeddings, task, f"ridge+k=10{rest}").mean for rest in ("", ",splitter=group"))
    assert by_chance > 0.5
    assert by_block < by_chance - 0.2


# Tasks whose baseline shuffled labels may meet, and why.
CHANCE = {
    "mini_random_cls": "a control: random classes",
    "mini_random_reg": "a control: random numbers",
}


def embedded() -> list[Task]:
    return list_tasks("*", tag="embedded")


def test_only_controls_have_no_headroom() -> None:
    assert {task.id for task in embedded() if task.control} == set(CHANCE)
    assert all(task.baseline and not task.baseline.source.endswith(NO_HEADROOM) for task in embedded())


def test_shuffling_keeps_the_labels_and_the_ids() -> None:
    (task,) = list_tasks("olinda_elevation_mean")
    labels = task.labels()
    other = shuffled(labels)
    assert other.ids == labels.ids
    assert sorted(other.values.ravel()) == sorted(labels.values.ravel())
    assert not np.array_equal(other.values, labels.values)


@pytest.mark.parametrize(("signal", "headroom"), [(1.0, True), (0.0, False)])
def test_a_baseline_has_headroom_only_if_the_embeddings_know_the_labels(signal: float, headroom: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 4)).astype("float32")
    y = signal * x[:, 0] + rng.standard_normal(200)
    ids = tuple(f"s{i:03}" for i in range(200))
    labels = Labels("made", "regression", ids, y, "0" * 64)
    measured = measure_baseline(make_embeddings(ids, x), labels, load_protocol("ridge+k=8"), "r2")
    assert (measured.headroom, measured.tolerance) == (headroom, 0.01)


HERE = [m.id for m in list_methods() if {"torchgeo", "terratorch"}.isdisjoint(m.requires) and "challenge" not in m.id]


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_what_sanity_checks_warn_of_stands_in_the_card(name: str) -> None:
    """The networks of libraries are in ``tests/models/test_declared.py``; the challenge's files have to be pinned."""
    subject = MethodSubject(load_method(name))
    card = (ROOT / "neuco_methods" / Path(subject.spec.origin.source).name / "README.md").read_text(encoding="utf-8")
    checks = catalog().all(Check)
    assert run_check(checks["method-sane"], subject).status in ("ok", "warning")
    for check in ("method-sane", "method-network", "method-distinct", "models-library"):
        finding = run_check(checks[check], subject)
        assert finding.status in ("ok", "warning", "skipped")
        if finding.status == "warning":
            measures = re.findall(r"(?:; |: |^)([^;:]+?) [\d.e+-]+ \(at", finding.detail)
            assert measures, finding.detail
            assert not [measure for measure in measures if measure not in card]
