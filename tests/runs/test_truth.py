"""``neuco verify`` confirms only what a fresh run on an empty cache gives, whatever was done to files in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from neuco_core.files import hashed
from neuco_core.plugins import catalog
from neuco_core.records.fingerprint import CellInputs, stale_records
from neuco_core.records.store import read_all, write_records
from neuco_core.runs.engine import StepLimits, WorkerProcess
from neuco_core.runs.messages import Embed, ScoreCell, Scored
from tests.command import python
from tests.runs.changes import (
    ALL,
    CACHE_DAMAGED,
    CACHE_FORGED,
    COMPILED,
    FILES_CHANGED,
    RECORD_FORGED,
    forge_cache,
)
from tests.runs.small import PROTOCOL, Small, same_numbers, verdict


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    with pytest.MonkeyPatch.context() as patch:
        yield Small(tmp_path_factory.mktemp("small") / "world", patch)
        catalog.catalog.cache_clear()


def test_true_records_are_the_same_whatever_the_cache_holds(small: Small) -> None:
    small.make()
    forge_cache(small)
    assert {check.verdict for check in small.verify() if check.record.ok} == {"same"}
    assert not (small.cache / "encoded" / "small_one" / "small" / "run.npz").exists(), "nothing is added to the cache"
    assert verdict(small.verify(fresh=False)) == "differs", "the quick way believes the cache"


@pytest.mark.parametrize("name", FILES_CHANGED)
def test_a_changed_plugin_is_noticed(small: Small, name: str) -> None:
    small.make()
    before = small.truth()
    change, expected = FILES_CHANGED[name]
    change(small)
    truth = small.truth()["small_one small_a"]
    assert not same_numbers(before["small_one small_a"], truth), "this change changes the numbers"
    assert verdict(small.verify()) == expected
    if expected == "stale":
        assert same_numbers(small.score(small.registry, small.cache)["small_one small_a"], truth)


@pytest.mark.parametrize("name", {**CACHE_DAMAGED, **CACHE_FORGED})
def test_a_wrong_cache_gives_no_wrong_number(small: Small, name: str) -> None:
    """The records of another task vouch for what the embeddings are, also where a file carries a seal."""
    small.make()
    truth = small.truth()
    ALL[name](small)
    write_records(small.registry, [], [record.key for record in read_all(small.registry) if record.task == "small_b"])
    assert same_numbers(small.score(small.registry, small.cache)["small_one small_b"], truth["small_one small_b"])


@pytest.mark.parametrize("name", COMPILED)
def test_what_earlier_processes_left_compiled_is_not_run(small: Small, name: str) -> None:
    small.make()
    truth = small.truth()["small_one small_a"]
    COMPILED[name](small)
    shutil.rmtree(small.cache)
    assert verdict(small.verify()) == "same"
    scored = small.score(small.folder / "again", small.folder / "other")["small_one small_a"]
    assert (scored.per_split, scored.inputs) == (truth.per_split, truth.inputs)


@pytest.mark.parametrize("name", RECORD_FORGED)
def test_a_forged_record_is_judged_by_its_numbers(small: Small, name: str) -> None:
    small.make()
    change, expected = RECORD_FORGED[name]
    change(small)
    assert verdict(small.verify()) == expected


def test_score_fresh_encodes_afresh(small: Small) -> None:
    small.make()
    shutil.rmtree(small.registry)
    forge_cache(small)
    assert not same_numbers(
        small.score(small.registry, small.cache)["small_one small_a"], small.truth()["small_one small_a"]
    )
    fresh = small.score(small.registry, small.cache, fresh=True)
    assert same_numbers(fresh["small_one small_a"], small.truth()["small_one small_a"])


def test_a_score_of_a_cell_that_cannot_be_scored_is_stale(small: Small) -> None:
    """The method lacks the dataset's bands; a forger who fills in every input is believed by nobody."""
    small.make()
    records = {record.task: record for record in read_all(small.registry) if record.method == "small_one"}
    honest = records["small_a"]
    assert records["small_bare"].status == "not-applicable"
    small.new_process(small.cache)
    now = CellInputs(catalog.load_protocol(PROTOCOL)).of(
        catalog.load_method("small_one"), catalog.load_task("small_bare")
    )
    inputs = {**honest.inputs, **now}
    forged = replace(honest, task="small_bare", dataset="small_bare", inputs=inputs, fingerprint=hashed(inputs))
    write_records(small.registry, [forged])
    reasons = stale_records([forged])
    assert "there is nothing to score: method 'small_one' needs 1 bands" in reasons[forged.key]
    assert {check.verdict for check in small.verify() if check.record.task == "small_bare"} == {"stale", "not checked"}


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(names=st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=4, unique=True))
def test_nothing_is_confirmed_that_a_fresh_run_does_not_give(small: Small, names: list[str]) -> None:
    small.make()
    for name in names:
        in_cache = name in CACHE_DAMAGED or name in CACHE_FORGED
        if not in_cache or any((small.cache / "encoded/small_one/small").glob("*.npz")):  # an earlier one may remove it
            ALL[name](small)
    small.score(small.folder / "again", small.cache)  # records of now, if nobody kept the old ones
    checks = [*small.verify(), *small.verify(small.folder / "again")]
    truth = small.truth()
    for check in checks:
        if check.confirmed:
            assert same_numbers(check.record, truth[f"{check.record.method} {check.record.task}"]), names


HELPER = "neuco_methods/small/helper.py"
STRETCH = """
import numba
from .helper import FACTOR

@numba.njit(cache=True)
def stretch(x):
    return FACTOR * x
"""
SHOW = "import neuco_methods.small.stretch as s; print(s.stretch(1.0))"
EMBED = """
from neuco_core.encode.run import EncodeOptions, method_embeddings
from neuco_core.plugins.catalog import load_method
print(method_embeddings(load_method("small_one"), "small", {}, EncodeOptions(cached=False)).sha256)
"""


@pytest.mark.slow
def test_workers_and_commands_run_no_machine_code_that_was_left(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler looks at one file and Python at a time and a size: both still have the helper of before."""
    small.make()
    small.write("neuco_methods/small/stretch.py", STRETCH)
    small.edit("neuco_methods/small/encoder.py", "from .helper import FACTOR", "from .stretch import stretch")
    small.edit("neuco_methods/small/encoder.py", "size * FACTOR", "stretch(size)")
    helper = small.folder / HELPER
    printed = []
    for factor in (3.0, 1.0):
        helper.write_text(f"FACTOR = {factor}\n")
        os.utime(helper, (1e9, 1e9))
        printed.append(
            python("-c", SHOW, path=small.folder, env={"PYTHONDONTWRITEBYTECODE": "", "NUMBA_CACHE_DIR": ""}).out
        )
    assert printed == ["3.0\n", "3.0\n"], "it is there, and any other process runs it"
    assert list((small.method / "__pycache__").glob("*.nbi"))

    monkeypatch.syspath_prepend(str(small.folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hashes = [run_both(small.folder)]
    for folder in list(small.folder.rglob("__pycache__")):
        shutil.rmtree(folder)
    hashes.append(run_both(small.folder))
    assert hashes[0] == hashes[1]
    helper.write_text("FACTOR = 3.0\n")
    assert run_both(small.folder) != hashes[0]
    assert not list(tmp_path.glob("neuco-*")), "each removes what it compiled"


def run_both(folder: Path) -> tuple[str, str]:
    """The embeddings' hash by a worker, and by a command that encodes in its own process."""
    worker = WorkerProcess(StepLimits())
    try:
        result = worker.run(ScoreCell(Embed("small_one", "small", fresh=True), "small_a", PROTOCOL))
    finally:
        worker.kill()
    assert isinstance(result, Scored), result
    done = python("-c", EMBED, path=folder)
    assert done.code == 0, done.text
    return result.embeddings, done.out.strip()
