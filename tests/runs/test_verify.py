"""``neuco verify`` confirms what it checked, and nothing else; ``neuco explain`` and the pages on runs are true."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from neuco_core.errors import UsageError
from neuco_core.records.model import FAILURES, FIELDS, Record
from neuco_core.records.store import find_record, write_records
from neuco_core.runs.engine import StepLimits
from neuco_core.runs.plan import STATES, TO_RUN
from neuco_core.runs.verify import MOST_APART, compare, follows_from, verify_records
from tests import console
from tests.records.examples import scored, unscored
from tests.runs.changes import shifted, with_inputs
from tests.runs.helpers import PROTOCOL, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One method scored on two tasks, once; each test has a copy of the records."""
    made = World(tmp_path_factory.mktemp("world"))
    done = made.neuco("score", "--all", "--method", "toy_one", "--protocol", PROTOCOL, "--task", "toy_[ab]")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def registry(world: World) -> Iterator[str]:
    copy = world.folder / "a copy"
    shutil.copytree(world.folder / "registry", copy)
    yield copy.name
    shutil.rmtree(copy)


def forge(world: World, task: str, change: Callable[[Record], Record]) -> None:
    record = find_record(world.folder / "a copy", ("toy_one", task, PROTOCOL))
    assert record is not None
    write_records(world.folder / "a copy", [change(record)])


def test_a_true_record_is_the_same_and_a_forged_one_differs(world: World, registry: str) -> None:
    assert world.logged().count("embed 2") == 2, "once to score two tasks, and eight samples again"
    done = world.neuco("verify", registry=registry)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 confirmed, tolerance 0.0001, embeddings made again" in done.stdout
    assert world.logged().count("embed 2") == 4, "and so to verify two records"
    done = world.neuco("verify", "--cached", registry=registry)
    assert "2 of 2 confirmed, tolerance 0.0001, embeddings from the cache where it had them" in done.stdout
    assert world.logged().count("embed 2") == 4
    # Other scores, and everything that follows from them: nothing shows it but a new run.
    forge(world, "toy_a", lambda record: shifted(record, -0.05))
    done = world.neuco("verify", "toy_one", "--json", registry=registry)
    assert done.returncode == 1
    assert json.loads(done.stdout)["embeddings"] == "fresh"
    verdicts = {check["task"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert verdicts == {"toy_a": "differs", "toy_b": "same"}
    assert "1 of 2 records not confirmed" in done.stderr
    assert "Run `neuco explain toy_one toy_a --protocol" in done.stderr
    assert "per_split: 0.05 apart" in done.stderr
    assert "1 of 1 confirmed" in world.neuco("verify", "toy_one/toy_b", registry=registry).stdout
    unknown = {"toy_on": "no record of method 'toy_on'. Did you mean 'toy_one'?", "toy_one/b": "task 'b'"}
    for name, message in unknown.items():
        done = world.neuco("verify", name, registry=registry)
        assert (done.returncode, message in done.stderr) == (3, True), done.stderr


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
    explained = world.neuco("explain", "toy_one", "toy_a", "--protocol", PROTOCOL, registry="empty")
    assert explained.returncode == 0, explained.stderr
    assert "toy_one on toy_a under" in explained.stdout
    assert ": new (not scored yet)" in explained.stdout
    assert f"next: neuco score --method toy_one --task toy_a --protocol {PROTOCOL}" in explained.stdout
    unpinned = json.loads(world.neuco("explain", "toy_one", "toy_unpinned", "--json").stdout)
    assert unpinned["state"] == "skipped"
    assert "unpinned" in unpinned["reason"]
    bare = json.loads(world.neuco("explain", "toy_one", "toy_bare_task", "--json").stdout)
    assert bare["state"] == "not-applicable"


def test_an_edited_record_is_refused_by_line_and_commands_can_be_pasted(world: World, registry: str) -> None:
    explain = ("explain", "toy_one", "toy_a", "--protocol", PROTOCOL)
    command = world.neuco(*explain, registry=registry).stdout.splitlines()[-1].removeprefix("next: ")
    assert shlex.split(command) == ["neuco", "verify", "toy_one/toy_a"]
    path = world.folder / registry / "records" / "toy_one.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"dim":2', b'"dim":3'))
    done = world.neuco(*explain, registry=registry)
    assert done.returncode == 4
    assert "it was edited after it was written: its digest does not match" in done.stderr


TRUE = scored(metrics={"accuracy": (0.5,) * 5, "mse": (2e6,) * 5})
# What a forger changes → the words that must name it.
FORGED: dict[str, tuple[Record, str]] = {
    "a score": (shifted(TRUE, 2e-4), "per_split: 0.0002 apart"),
    "the number of splits": (replace(TRUE, per_split=TRUE.per_split[:4]), "per_split: 5 splits, recorded are 4"),
    "an undefined split": (replace(TRUE, per_split=(None, *TRUE.per_split[1:])), "other splits are undefined"),
    "another metric": (replace(TRUE, metrics={**TRUE.metrics, "accuracy": (0.9,) * 5}), "metrics.accuracy: 0.4 apart"),
    "a metric too many": (replace(TRUE, metrics={**TRUE.metrics, "x": (0.9,) * 5}), "metrics.x is recorded, and"),
    "a metric left out": (replace(TRUE, metrics={"mse": (2e6,) * 5}), "metrics.accuracy is not recorded"),
    "a count": (replace(TRUE, samples={"used": 4000, "labels": 41}), "samples.used is 40, recorded is 4000"),
    "another count": (replace(TRUE, samples={**TRUE.samples, "x": 1}), "samples.x is None, recorded is 1"),
    "splits": (replace(TRUE, splits={"undefined": 0, "one_class": 2}), "splits.one_class is None, recorded is 2"),
    "the dimension": (replace(TRUE, dim=8), "dim is 64, recorded is 8"),
    "baseline": (replace(TRUE, baseline=True), "baseline is False, recorded is True"),
    "the direction": (replace(TRUE, greater_is_better=False), "greater_is_better is True, recorded is False"),
    "the range": (replace(TRUE, upper=None), "upper is 1.0, recorded is None"),
    "the dataset": (replace(TRUE, dataset="other"), "dataset is 'digits', recorded is 'other'"),
    "the labels": (with_inputs(TRUE, labels="0b" * 32), "other labels than recorded"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_field_is_found_and_named(name: str) -> None:
    forged, message = FORGED[name]
    check = compare(forged, TRUE)
    assert (check.verdict, check.confirmed) == ("differs", False)
    assert message in check.reason


def test_every_field_but_provenance_is_compared() -> None:
    """A field that will be added is compared, unless it is left out on purpose."""
    follows = {"mean", "std", "q", "fingerprint"}  # the strict reader checks those
    for name in set(FIELDS) - follows - {"provenance", "inputs", "per_split", "metrics", "samples", "splits"}:
        assert not compare(replace(TRUE, **{name: "forged"}), TRUE).confirmed, name
    assert compare(replace(TRUE, provenance={"seconds": 9}), TRUE).verdict == "same"


@pytest.mark.parametrize(
    ("record", "encoded", "verdict"),
    [
        (TRUE, True, "same"),
        (shifted(TRUE, 5e-5), True, "close"),
        (with_inputs(TRUE, embeddings="0b" * 32), True, "close"),
        (with_inputs(TRUE, embeddings="0b" * 32), False, "differs"),
        (replace(TRUE, metrics={**TRUE.metrics, "mse": (2e6 + 1,) * 5}), True, "close"),
    ],
)
def test_how_close_is_close(record: Record, encoded: bool, verdict: str) -> None:
    assert compare(record, TRUE, encoded=encoded).verdict == verdict


OTHER = with_inputs(TRUE, embeddings="0b" * 32)


@pytest.mark.parametrize(
    ("record", "spread", "verdict", "confirmed"),
    [
        (shifted(OTHER, 0.02), 0.03, "depends on the machine", None),
        (shifted(OTHER, 0.02), 0.01, "differs", False),
        (shifted(OTHER, 0.02), 0.0, "differs", False),
        (shifted(OTHER, 5e-5), 0.03, "close", True),
        # The same embeddings give the same scores on every machine.
        (shifted(TRUE, 0.02), 0.03, "differs", False),
        # And no machine changes labels or counts.
        (replace(shifted(OTHER, 0.02), samples={"used": 4000, "labels": 41}), 0.03, "differs", False),
        (replace(shifted(OTHER, 0.02), metrics={"mse": (2e6,) * 5}), 0.03, "differs", False),
        (with_inputs(shifted(TRUE, 0.02), embeddings="0b" * 32, labels="0b" * 32), 0.03, "differs", False),
    ],
)
def test_a_method_that_depends_on_the_machine_is_no_liar(
    record: Record, spread: float, verdict: str, confirmed: bool | None
) -> None:
    check = compare(record, TRUE, spread=spread)
    assert (check.verdict, check.confirmed) == (verdict, confirmed)
    if confirmed is None:
        assert check.reason.startswith(f"means no farther apart than the declared {spread:g}; per_split: 0.02 apart")


def test_an_error_in_a_small_unit_is_compared_in_this_unit() -> None:
    """All of these are within 0.0001 of each other, and one is ten times another."""
    true = replace(TRUE, metric="mse", per_split=(1e-6,) * 5, metrics={})
    assert compare(replace(true, per_split=(1e-7,) * 5), true).verdict == "differs"
    assert compare(replace(true, per_split=(1.00005e-6,) * 5), true).verdict == "close"


def test_a_run_that_fails_confirms_nothing() -> None:
    check = compare(TRUE, unscored())
    assert (check.verdict, check.reason, check.confirmed) == ("failed", "it was too slow", False)


@pytest.mark.parametrize("tolerance", [float("nan"), float("inf"), -1.0])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(UsageError, match="bad tolerance; expected a finite number of at least 0"):
        list(verify_records([], None, StepLimits(), tolerance))  # type: ignore[arg-type]


def test_what_was_not_run_is_not_confirmed(world: World, registry: str) -> None:
    empty = {"per_split": (), "mean": None, "std": None, "q": None, "metrics": {}, "samples": {}, "splits": {}}
    forge(world, "toy_b", lambda record: replace(record, status="skipped", reason="no data", **empty))
    alone = world.neuco("verify", "toy_one/toy_b", registry=registry)
    assert alone.returncode == 1
    assert "0 of 1 confirmed, 1 not checked (without a score, or made from a file)" in alone.stdout
    assert "nothing was confirmed" in alone.stderr
    both = world.neuco("verify", registry=registry)
    assert both.returncode == 0, both.stderr
    assert "1 of 2 confirmed, 1 not checked (without a score, or made from a file), tolerance 0.0001" in both.stdout


def test_a_registry_without_records_confirms_nothing(world: World) -> None:
    done = world.neuco("verify", registry="not/there")
    assert done.returncode == 4
    assert "no records to verify" in done.stderr
    assert "NEUCO_REGISTRY" in done.stderr


def test_every_command_does_what_the_document_shows(tmp_path: Path, root: Path) -> None:
    text = (root / "docs/howto/run.md").read_text(encoding="utf-8")
    folder = tmp_path / "registry"
    environment = {"HOME": str(tmp_path), "NEUCO_REGISTRY": str(folder), "PYTHONPATH": str(root)}
    for step in console.steps(text):
        done = console.run(step, tmp_path, environment)
        assert done.returncode == 0, done.stdout
        assert step.python or console.matches(step.expected, done.stdout), done.stdout


def test_the_tables_are_complete(root: Path) -> None:
    text = (root / "docs/ref/records.md").read_text(encoding="utf-8")
    for state in STATES:
        runs = "yes" if state in TO_RUN else "no"
        assert any(line.startswith(f"| {state} | ") and line.endswith(f"| {runs} |") for line in text.splitlines()), (
            state
        )
    for failure in FAILURES:
        assert f"\n| {failure} | " in text
