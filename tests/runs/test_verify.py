"""Records are run again and compared; the state of a cell is explained."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from msgspec.structs import replace

from neuco_core.records.model import summary
from neuco_core.records.store import read_method, write_records
from neuco_core.runs.verify import MOST_APART, compare, follows_from
from tests.records.examples import scored
from tests.runs.helpers import PROTOCOL, World


def forge(registry: Path) -> None:
    """Better scores, and everything that follows from them: nothing shows it but a new run."""
    record = read_method(registry, "toy_one")[0]
    splits = tuple(min(1.0, value + 0.05) for value in record.per_split if value is not None)
    mean, std, q = summary(splits, record.greater_is_better) or (None, None, None)
    write_records(registry, [replace(record, per_split=splits, mean=mean, std=std, q=q)])


def test_a_true_record_is_the_same_and_a_forged_one_differs(world: World) -> None:
    words = ["--protocol", PROTOCOL, "--task", "toy_[ab]"]
    assert world.neuco("score", "--all", "--method", "toy_one", *words).returncode == 0
    done = world.neuco("verify")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 confirmed, tolerance 0.0001, embeddings made afresh" in done.stdout
    assert world.logged().count("embed 2") == 2, "once to score two tasks, once to verify two records"
    done = world.neuco("verify", "--cached")
    assert "2 of 2 confirmed, tolerance 0.0001, embeddings from the cache where it had them" in done.stdout
    assert world.logged().count("embed 2") == 2
    forge(world.folder / "registry")
    done = world.neuco("verify", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["embeddings"] == "fresh"
    verdicts = {check["task"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert verdicts == {"toy_a": "differs", "toy_b": "same"}
    assert "1 of 2 records not confirmed" in done.stderr


def test_scores_of_a_network_may_move_by_what_follows_from_its_tolerance() -> None:
    record = scored(kind="regression", samples={"test": 180, "used": 1797})
    assert follows_from(0.0, record) == 0.0
    assert follows_from(1e-4, record) == 50 * 1e-4
    assert follows_from(1e-4, replace(record, kind="classification")) == 50 * 1e-4 + 2 / 180
    assert follows_from(0.019, record) == MOST_APART
    moved = replace(record, per_split=tuple(value + 0.003 for value in record.per_split if value is not None))
    assert compare(record, moved, follows_from(1e-4, record)).verdict == "close"
    assert compare(record, moved, follows_from(1e-5, record)).verdict == "differs"


def test_explain_tells_the_state_and_the_next_command(world: World) -> None:
    told = world.neuco("explain", "toy_one", "toy_a", "--protocol", PROTOCOL)
    assert told.returncode == 0, told.stderr
    assert "toy_one on toy_a under" in told.stdout
    assert ": new (not scored yet)" in told.stdout
    assert f"next: neuco score --method toy_one --task toy_a --protocol {PROTOCOL}" in told.stdout
    unpinned = json.loads(world.neuco("explain", "toy_one", "toy_unpinned", "--json").stdout)
    assert unpinned["state"] == "skipped"
    assert "unpinned" in unpinned["reason"]
    bare = json.loads(world.neuco("explain", "toy_one", "toy_bare_task", "--json").stdout)
    assert bare["state"] == "not-applicable"


def test_an_edited_record_is_refused_by_line_and_commands_can_be_pasted(world: World) -> None:
    words = ["--protocol", PROTOCOL]
    scored = world.neuco("score", "--all", "--method", "toy_one", "--task", "toy_a", *words, registry="a b")
    assert scored.returncode == 0
    told = world.neuco("explain", "toy_one", "toy_a", *words, registry="a b").stdout
    command = told.splitlines()[-1].removeprefix("next: ")
    assert shlex.split(command) == ["neuco", "verify", "toy_one/toy_a"]
    path = world.folder / "a b" / "records" / "toy_one.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"dim":2', b'"dim":3'))
    done = world.neuco("explain", "toy_one", "toy_a", *words, registry="a b")
    assert done.returncode == 4
    assert "toy_one.jsonl:1: it was edited after it was written: its digest does not match" in done.stderr
