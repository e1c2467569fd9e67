"""Plans: what is new, stale and why, cached, failed, skipped; decided without computing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from neuco_core.errors import UsageError
from neuco_core.fetch.links import variable
from neuco_core.plugins.catalog import load_protocol
from neuco_core.protocol import Protocol
from neuco_core.records import fingerprint
from neuco_core.records.fingerprint import stale_records
from neuco_core.records.model import Record
from neuco_core.records.store import find_record, read_all, records_file, write_records
from neuco_core.runs.engine import Schedule, StepLimits
from neuco_core.runs.messages import Call, Embed, Embedded, Failed, Group, Result, Returned, ScoreCell, Scored, Step
from neuco_core.runs.plan import Plan, PlannedCell, make_plan
from neuco_core.runs.run import make_record, run_plan, save_record
from neuco_core.specs import Method, Remote, Task

METHOD = Method(id="soil_net", files={"soil": Remote("file:///m.npz", sha256="1" * 64)}, dim=8)
TASK = Task(id="soil_ph", dataset="soil", kind="regression", source=Remote("file:///ph.csv", sha256="2" * 64))
RULES = load_protocol("neuco-2025+k=3")
SCORE = Scored(
    labels="3" * 64,
    embeddings="4" * 64,
    dim=8,
    per_split=(0.5, None, 0.25),
    metrics={"mse": (1.0, None, 2.0)},
    samples={"used": 9},
    splits={"undefined": 1},
    settings={"C": (10.0, None, 1.0)},
    provenance={"seconds": 1.0},
)


FAILURE = Failed("timeout", "not done after 5 seconds")


def plan(registry: Path, method: Method = METHOD, task: Task = TASK, rules: Protocol = RULES, **options: Any) -> Plan:
    return make_plan([method], [task], rules, registry, **options)


def cell(registry: Path, *specs: Any, **options: Any) -> PlannedCell:
    return plan(registry, *specs, **options).cells[0]


def done(registry: Path, result: Result = SCORE) -> None:
    """The cell was run, with this result."""
    save_record(make_record(cell(registry), result, "local"), registry)


def test_new_then_cached(tmp_path: Path) -> None:
    assert cell(tmp_path).state == "new"
    done(tmp_path)
    assert (cell(tmp_path).state, cell(tmp_path).reason) == ("cached", "")
    record = read_all(tmp_path)[0]
    assert (record.mean, record.per_split, record.settings) == (0.375, (0.5, None, 0.25), SCORE.settings)
    assert stale_records([record]) == {record.key: "method 'soil_net' is not registered"}


OTHER_LABELS, OTHER_FILE = Remote("file:///ph.csv", sha256="5" * 64), Remote("file:///m.npz", sha256="6" * 64)
READ = "the label file, or how it is read, changed"
CHANGES: dict[str, tuple[Callable[[], tuple[Any, ...]], str]] = {
    "metric": (lambda: (METHOD, replace(TASK, metric="mse")), "metric changed from 'r2' to 'mse'"),
    "label file": (lambda: (METHOD, replace(TASK, source=OTHER_LABELS)), READ),
    "label column": (lambda: (METHOD, replace(TASK, columns=("ph",))), READ),
    "embeddings": (lambda: (replace(METHOD, files={"soil": OTHER_FILE}),), "the embeddings' file"),
    "a protocol's field": (lambda: (METHOD, TASK, replace(RULES, lr=0.5)), "protocol.lr changed from 0.001 to 0.5"),
    "a probe's": (lambda: (METHOD, TASK, replace(RULES, params={"x": 1})), "protocol.params.x changed from None to 1"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_input_is_named(name: str, tmp_path: Path) -> None:
    done(tmp_path)
    make, message = CHANGES[name]
    planned = cell(tmp_path, *make())
    assert planned.state == "stale"
    assert message in planned.reason


NEW_SCORER = {"score": 99, "shuffle": 1, "LinearProbe": 1, "r2": 1, "strict_r2": 1}


def test_another_scorer_makes_everything_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done(tmp_path)
    monkeypatch.setattr(fingerprint, "behind", lambda module, name: {name: NEW_SCORER[name]})
    assert (cell(tmp_path).state, cell(tmp_path).reason) == ("stale", "the scorer changed")


CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "another direction": ({"greater_is_better": False}, "greater_is_better is False, but True by the metric"),
    "a wider range": ({"upper": 2.0}, "upper is 2.0, but 1.0 by the metric"),
    "no range": ({"upper": None}, "upper is None, but 1.0 by the metric"),
    "a lower bound": ({"lower": -1.0}, "lower is -1.0, but None by the metric"),
    "a baseline": ({"baseline": True}, "baseline is True, but False by the method"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_what_contradicts_the_registered_metric_or_method_does_not_hold(name: str, tmp_path: Path) -> None:
    """Signed by somebody who knows how: the strict reader alone cannot see it."""
    done(tmp_path)
    changes, message = CLAIMS[name]
    true = read_all(tmp_path)[0]
    if "greater_is_better" in changes and true.q is not None:
        changes = {**changes, "q": -true.q}
    write_records(tmp_path, [msgspec.structs.replace(true, **changes)])
    planned = cell(tmp_path)
    assert (planned.state, planned.reason) == ("stale", message)
    done(tmp_path)
    assert cell(tmp_path).state == "cached", "scoring anew makes it right"


def test_a_shipped_record_that_was_forged_is_never_ranked(root: Path) -> None:
    true = find_record(root / "registry", ("pca", "digits_class", "ridge"))
    assert true is not None
    forged = msgspec.structs.replace(true, baseline=True)
    assert [stale_records([true]), stale_records([forged])] == [{}, {true.key: CLAIMS["a baseline"][1]}]


def test_what_failed_is_kept_until_it_is_tried_again_on_purpose(tmp_path: Path) -> None:
    done(tmp_path, FAILURE)
    assert cell(tmp_path).state == "failed"
    assert not cell(tmp_path).to_run
    assert cell(tmp_path).reason == "timeout: not done after 5 seconds"
    assert cell(tmp_path, retry=True).state == "retry"
    assert cell(tmp_path, replace(METHOD, version=2)).state == "new", "another version is another cell"


def test_what_cannot_be_had_here_is_skipped_but_an_earlier_score_stays(tmp_path: Path) -> None:
    unpinned = replace(TASK, source=Remote("https://example.org/ph.csv"))
    planned = cell(tmp_path, METHOD, unpinned)
    assert planned.state == "skipped"
    assert "no checksum" in planned.reason
    done(tmp_path)
    planned = cell(tmp_path, METHOD, unpinned)
    assert planned.state == "cached"
    assert "could not be compared" in planned.reason
    assert cell(tmp_path, METHOD, replace(unpinned, version=2)).state == "skipped"


def test_labels_that_the_linked_folder_lacks_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpinned = replace(TASK, source=Remote("https://example.org/labels/ph.csv"))
    monkeypatch.setenv(variable(TASK.dataset), str(tmp_path))
    planned = cell(tmp_path, METHOD, unpinned)
    assert planned.state == "skipped", "run, it would fail and be recorded over a good score"
    assert f"labels/ph.csv is not in this local copy of 'soil' ({tmp_path})" in planned.reason


@pytest.mark.parametrize("protocol", ["logistic", "retrieval", "clustering+k=3"])
def test_a_protocol_that_is_not_for_the_kind_of_task_is_not_applicable(tmp_path: Path, protocol: str) -> None:
    planned = cell(tmp_path, METHOD, TASK, load_protocol(protocol))
    assert (planned.state, planned.to_run) == ("not-applicable", False)
    assert f"probe {protocol.partition('+')[0]!r} is not for regression; expected classification" in planned.reason
    record = save_record(make_record(planned, None, "local"), tmp_path)
    assert (record.status, record.failure, record.reason) == ("not-applicable", None, planned.reason)
    classes = replace(TASK, kind="classification", metric="f1")
    assert cell(tmp_path, METHOD, classes, load_protocol(protocol)).state == "new"


def test_a_probe_that_predicts_no_labels_has_a_metric_of_its_own(tmp_path: Path) -> None:
    """Its record does not call a mean average precision by the name of the task's metric."""
    task = replace(TASK, kind="classification", metric="accuracy")
    planned = cell(tmp_path, METHOD, task, load_protocol("retrieval"))
    record = make_record(planned, SCORE, "local")
    assert (record.metric, record.inputs["metric"], record.upper) == ("map", "map", 1.0)
    assert record.inputs["metric_code"] == cell(tmp_path, METHOD, replace(task, metric="map")).inputs["metric_code"]
    assert make_record(cell(tmp_path, METHOD, task), SCORE, "local").metric == "accuracy"


def test_a_result_that_no_record_can_hold_is_a_failure(tmp_path: Path) -> None:
    impossible = msgspec.structs.replace(SCORE, per_split=(7.0, None, 7.0))
    record = save_record(make_record(cell(tmp_path), impossible, "local"), tmp_path)
    assert (record.status, record.failure) == ("failed", "method")
    assert "outside the range of its metric" in record.reason
    assert find_record(tmp_path, record.key) == record


def test_records_hold_no_folder_of_this_machine(tmp_path: Path) -> None:
    done(tmp_path)
    assert str(Path.home()) not in records_file(tmp_path, METHOD.id).read_text()


def group(method: str, *tasks: str) -> Group:
    embed = Embed(method, "d")
    return Group(tuple(ScoreCell(embed, task, "p") for task in tasks), embed)


def test_a_worker_stays_with_its_method_and_helps_others_only_in_the_end() -> None:
    first, second = group("m", "a", "b", "c"), group("n", "a")
    schedule = Schedule([first, second])
    assert schedule.next(1) is first.embed
    assert schedule.next(2) is second.embed
    assert schedule.next(3) is None, "embeddings are not made twice"
    list(schedule.ended(second.embed, Embedded(8)))
    list(schedule.ended(first.embed, Embedded(8)))
    assert [schedule.next(worker) for worker in (1, 2, 2, 1)] == [
        first.steps[0], second.steps[0], first.steps[1], first.steps[2],
    ]  # fmt: skip
    assert not schedule.left


def test_a_queue_is_asked_for_more_until_it_ends() -> None:
    calls = [Call("module:name", {"number": number}) for number in range(2)]
    schedule = Schedule(iter([Group((calls[0],)), None, Group((calls[1],))]))
    assert schedule.next(1) is calls[0]
    assert schedule.next(2) is None
    assert schedule.left, "there may be more to come"
    assert schedule.next(2) is calls[1]
    assert schedule.next(3) is None
    assert not schedule.left
    assert list(schedule.ended(calls[0], Returned(1))) == [(calls[0], Returned(1))]


def test_embeddings_that_cannot_be_made_end_all_their_cells() -> None:
    schedule = Schedule([group("m", "a", "b")])
    step = schedule.next(1)
    assert step is not None
    assert [s.label for s, _ in schedule.ended(step, FAILURE)] == ["m on a", "m on b"]
    assert schedule.next(1) is None


class ReadyEngine:
    """An engine that has every result at once."""

    name = "ready"
    progress = None

    def run(self, groups: Sequence[Group], limits: StepLimits) -> Iterator[tuple[Step, Result]]:
        for item in groups:
            for step in item.steps:
                yield step, SCORE


def run(registry: Path, planned: Plan) -> list[Record]:
    return list(run_plan(planned, registry, ReadyEngine(), StepLimits()))


def test_versions_stand_side_by_side(tmp_path: Path) -> None:
    done(tmp_path)
    before = read_all(tmp_path)
    for method, task in ((METHOD, replace(TASK, version=2)), (replace(METHOD, version=3), TASK)):
        assert cell(tmp_path, method, task).state == "new"
        [record] = run(tmp_path, plan(tmp_path, method, task))
        assert cell(tmp_path, method, task).state == "cached"
        assert record.key[:2] == (method.label, task.label)
    assert cell(tmp_path).state == "cached"
    assert [record for record in read_all(tmp_path) if record.key == before[0].key] == before
    assert [record.key[:2] for record in read_all(tmp_path)] == [
        ("soil_net", "soil_ph"),
        ("soil_net", "soil_ph@2"),
        ("soil_net@3", "soil_ph"),
    ]


def test_a_skipped_cell_does_not_take_the_place_of_a_score_from_elsewhere(tmp_path: Path) -> None:
    done(tmp_path)
    stale_here = replace(TASK, unit="other", columns=("other",), source=Remote("https://example.org/ph.csv"))
    assert run(tmp_path, plan(tmp_path, METHOD, stale_here)) == []
    assert read_all(tmp_path)[0].ok


def test_code_that_changes_during_a_run_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(tmp_path)
    monkeypatch.setattr(fingerprint, "behind", lambda module, name: {name: NEW_SCORER[name]})
    [record] = run(tmp_path, planned)
    assert record.failure == "data"
    assert "changed while it was scored" in record.reason
    assert cell(tmp_path).state == "stale"


def test_a_protocol_must_be_what_its_name_says(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the protocol's fields do not match its name"):
        run(tmp_path, plan(tmp_path, METHOD, TASK, replace(RULES, lr=0.5)))


def test_a_registry_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file where a folder should be")
    with pytest.raises(UsageError, match="the registry cannot be written"):
        run(tmp_path, plan(tmp_path))


def test_a_package_that_is_not_here_makes_no_record_stale(tmp_path: Path) -> None:
    net = Method(id="soil_net", encoder=dict, requires=("numpy", "no-such-weights"))
    digits = replace(TASK, dataset="digits")
    lacking = "method 'soil_net' needs no-such-weights, which is not installed"
    planned = cell(tmp_path, net, digits)
    assert (planned.state, planned.reason, planned.inputs["embeddings_from"]) == ("skipped", lacking, None)
    save_record(make_record(planned, SCORE, "local"), tmp_path)
    planned = cell(tmp_path, net, digits)
    assert (planned.state, planned.reason) == ("cached", f"could not be compared here: {lacking}")
