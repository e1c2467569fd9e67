"""Files of records: what is written, read, hidden by another registry, refused by file and line; and as an array."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.cli.score_show import describe
from neuco_core.cli.verify import _line
from neuco_core.errors import DataError, UsageError
from neuco_core.files import canonical
from neuco_core.plugins.catalog import load_method, load_protocol, load_task
from neuco_core.records import store
from neuco_core.records.model import Record, record_line
from neuco_core.records.score_array import score_array
from neuco_core.records.store import exclusive, find_record, read_all, read_method, records_file, write_records
from neuco_core.runs.messages import Failed
from neuco_core.runs.plan import make_plan
from neuco_core.runs.run import make_record
from neuco_core.runs.verify import Verified
from neuco_core.runs.worker import result_of
from neuco_core.scoring.cell import outcome_of
from tests.command import neuco_here
from tests.records.examples import scored, unscored
from tests.records.test_record import signed

CELLS = [scored(method, f"task_{number}") for method in ("one", "two") for number in range(3)]
HUGE = "1" + "0" * 400
DEEP = "[" * 900 + "]" * 900
HALF = '"\\ud800"'
STEERS = "\x1b]0;owned\x07 \x9b2J \u202etxt.exe\x7f"  # a title, a cleared screen, an order of reading


def test_a_file_has_the_cells_of_one_method_in_order(tmp_path: Path) -> None:
    for record in reversed(CELLS):
        write_records(tmp_path, [record])
    assert [path.name for path in sorted((tmp_path / "records").iterdir())] == ["one.jsonl", "two.jsonl"]
    assert records_file(tmp_path, "one").read_bytes() == b"".join(map(record_line, CELLS[:3]))
    assert read_all(tmp_path) == CELLS
    assert list(read_method(tmp_path, "two").values()) == CELLS[3:]
    assert find_record(tmp_path, CELLS[1].key) == CELLS[1]
    assert find_record(tmp_path, ("one", "task_9", "neuco-2025")) is None
    assert find_record(tmp_path, ("three", "task_0", "neuco-2025")) is None


def test_a_record_takes_the_place_of_the_one_before_and_others_can_be_taken_away(tmp_path: Path) -> None:
    write_records(tmp_path, CELLS)
    untouched = records_file(tmp_path, "two").stat()
    later = scored("one", "task_0", seed=5)
    write_records(tmp_path, [later], gone=[CELLS[1].key])
    assert list(read_method(tmp_path, "one").values()) == [later, CELLS[2]]
    assert records_file(tmp_path, "two").stat() == untouched
    write_records(tmp_path, [], gone=[record.key for record in CELLS])
    assert list((tmp_path / "records").iterdir()) == []


def test_a_bad_record_is_not_written(tmp_path: Path) -> None:
    write_records(tmp_path, CELLS)
    with pytest.raises(DataError, match="mean does not follow"):
        write_records(tmp_path, [scored("one", "task_0", mean=0.0)])
    assert read_all(tmp_path) == CELLS


def test_an_installed_registry_shows_through_that_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, user = tmp_path / "shipped", tmp_path / "user"
    monkeypatch.setattr(store, "layers", lambda registry, top=None: (user, shipped))
    write_records(shipped, CELLS)
    own, more = scored("one", "task_0", seed=7), scored("one", "task_9")
    write_records(user, [own, more])
    assert read_all(user) == [own, *CELLS[1:3], more, *CELLS[3:]]
    assert (find_record(user, own.key), find_record(user, CELLS[1].key)) == (own, CELLS[1])
    assert len(records_file(user, "one").read_bytes().splitlines()) == 2, "nothing is copied"


def test_one_run_at_a_time_writes_and_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    write_records(tmp_path, CELLS)
    left = tmp_path / "records" / ".one.jsonl.abc123"
    left.write_text("{")
    other = (
        f"from pathlib import Path\nfrom neuco_core.records.store import exclusive\n"
        f"with exclusive(Path({str(tmp_path)!r})): pass"
    )
    with exclusive(tmp_path):
        assert not left.exists()
        done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
        assert "another run is writing records here" in done.stderr
    subprocess.run([sys.executable, "-c", other], check=True)
    assert read_all(tmp_path) == CELLS, "the lock is a hidden file, and no records"


def with_text(**changes: str) -> bytes:
    """A record with these texts as values of fields, and the digest that fits."""
    values = json.loads(record_line(scored()))
    line = signed({**values, **dict.fromkeys(changes, "HERE")}).decode()
    for name, text in changes.items():
        line = line.replace(f'"{name}":"HERE"', f'"{name}":{text}')
    return line.encode("utf-8", "surrogatepass")


def inputs_with(name: str, text: str) -> str:
    return canonical({**scored().inputs, name: "HERE"}).replace('"HERE"', text)


# What is in the line → which field the error must name.
HOSTILE: dict[str, tuple[dict[str, str], str]] = {
    "digits as a bound": ({"lower": HUGE}, "bad lower: Number out of range"),
    "digits as a dimension": ({"dim": "-" + HUGE}, "bad dim: Expected `int` >= 1"),
    "digits in provenance": ({"provenance": f'{{"a":{{"b":{HUGE}}}}}'}, "bad provenance[...][...]: Expected"),
    "digits in inputs": ({"inputs": inputs_with("protocol.k", HUGE)}, "bad inputs[...]: Expected"),
    "more digits than Python reads": ({"method_version": "9" * 100_000}, "bad method_version: "),
    "a deep provenance": ({"provenance": f'{{"a":{DEEP}}}'}, "bad provenance[...][0]: Expected"),
    "deep splits": ({"per_split": DEEP}, "bad per_split[0]: Expected"),
    "deeper than Python reads": ({"reason": "[" * 100_000 + "]" * 100_000}, "bad record: "),
    "half a character": ({"reason": HALF}, "bad record: JSON is malformed: unexpected end of"),
    "a reason that steers": ({"reason": json.dumps(STEERS)}, "bad reason; expected text without control characters"),
    "a protocol that steers": ({"protocol": json.dumps("ridge+x=\x9b2J")}, "bad protocol"),
    "an id of two lines": ({"method": json.dumps("random\n")}, "bad method"),
    "an input's name that steers": ({"inputs": inputs_with("protocol.\x9b2J", "1")}, "bad inputs; expected text"),
    "a metric's name that steers": ({"metrics": json.dumps({STEERS: [0.5] * 5})}, "bad metrics; expected text"),
    "beyond all floats": ({"provenance": '{"a":1e999}'}, "bad provenance[...]: Number out of range"),
    "a name twice": ({"samples": '{"labels":41,"used":40,"used":40}'}, "it was edited"),
    "a field twice": ({"lower": '0.0,"lower":0.0'}, "it was edited"),
    "another layout": ({"lower": " 0.0"}, "it was edited"),
    "broken JSON": ({"mean": "0.5.5"}, "bad record: JSON is malformed"),
    "a long name": ({"mean": '0.5,"' + "x" * 10_000 + '":1'}, "bad record: Object contains unknown field `xxx"),
    "no text": ({"kind": '"\udcff"'}, "bad "),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_is_refused_by_line_and_field(name: str, tmp_path: Path) -> None:
    changes, message = HOSTILE[name]
    path = records_file(tmp_path, "random")
    path.parent.mkdir()
    path.write_bytes(record_line(scored(task="digits_a")) + with_text(**changes))
    with pytest.raises(DataError) as caught:
        read_all(tmp_path)
    text = str(caught.value)
    assert text.startswith(message)
    assert f"({path}:2)" in text
    assert text.endswith("Delete the line, and run `neuco score` for its cell again")
    assert len(text) < 1000 + len(str(path))
    text.encode()


# What happens to a file of three records → the line and the words of the error.
DAMAGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut off": (lambda data: data[:-100], ":3: bad record: "),
    "without its last newline": (lambda data: data[:-1], ":3: a name that is there twice, or a text"),
    "an empty line": (lambda data: b"\n" + data, ":1: bad record: "),
    "a conflict of git": (lambda data: b"<<<<<<< HEAD\n" + data, ":1: bad record: "),
    "edited": (lambda data: data.replace(b'"dim":64', b'"dim":65', 1), ":1: it was edited after it was written"),
    "a line twice": (lambda data: data + data.splitlines(keepends=True)[0], ":4: a second record of the same cell"),
    "another method's": (lambda data: data + record_line(scored("two")), ":4: a record in the wrong file; expected tw"),
    "no object": (lambda data: b"[]\n" + data, ":1: bad record: Expected `object`, got `array`"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_by_line_with_a_way_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage, message = DAMAGED[name]
    cells = [scored(task=task) for task in ("digits_class", "digits_even", "mini_clouds")]
    write_records(tmp_path, [*cells, scored("averaging")])
    path = records_file(tmp_path, "random")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError) as caught:
        read_method(tmp_path, "random")
    line, _, words = message.partition(": ")
    assert str(caught.value).startswith(words)
    assert f"({path}{line})" in str(caught.value)
    assert "elete" in caught.value.hint
    assert read_method(tmp_path, "averaging"), "other methods do not notice"
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    plan = ["score", "--dry-run", "--task", "digits_class", "--method"]
    assert [neuco_here(*plan, method).code for method in ("random", "averaging")] == [4, 0]


STRAY = ("stray.json", "sub/x.jsonl", "notes.txt", "x.jsonl.bak", "A.jsonl", "x@0.jsonl")


@pytest.mark.parametrize("name", STRAY)
def test_what_is_no_file_of_records_is_refused_in_their_folder(name: str, tmp_path: Path) -> None:
    write_records(tmp_path, CELLS)
    path = tmp_path / "records" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    with pytest.raises(DataError, match=r"not a file of records, in their folder; expected METHOD\.jsonl"):
        read_all(tmp_path)


# What lies in the place of a file of records; ``true`` is one that lies elsewhere.
NO_FILES: dict[str, Callable[[Path, Path], None]] = {
    "a link": lambda path, true: path.symlink_to(true),
    "a link to nothing": lambda path, true: path.symlink_to("nowhere"),
    "a link to a device": lambda path, true: path.symlink_to("/dev/zero"),
    "a pipe": lambda path, true: os.mkfifo(path),
}


@pytest.mark.parametrize("name", NO_FILES)
def test_what_is_no_file_of_its_own_is_never_read(name: str, tmp_path: Path) -> None:
    write_records(tmp_path / "other", [scored()])
    path = records_file(tmp_path, "random")
    path.parent.mkdir(parents=True)
    NO_FILES[name](path, records_file(tmp_path / "other", "random"))
    readers: list[Callable[[], Any]] = [lambda: read_all(tmp_path), lambda: find_record(tmp_path, scored().key)]
    for read in readers:
        with pytest.raises(DataError, match="not a file of records, in their folder"):
            read()


def test_a_folder_of_records_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    with pytest.raises(DataError, match="the folder of records cannot be read"):
        read_all(tmp_path)


def planned_record(tmp_path: Path, result: Any) -> Record:
    plan = make_plan([load_method("random")], [load_task("digits_class")], load_protocol("neuco-2025"), tmp_path)
    return make_record(plan.cells[0], result, "local")


def test_reasons_are_recorded_and_printed_without_what_steers_a_terminal(tmp_path: Path) -> None:
    results = (
        result_of(outcome_of(DataError(STEERS))),
        result_of(outcome_of(ModuleNotFoundError(STEERS))),
        Failed("crash", STEERS * 999),
    )
    for result in results:
        record = planned_record(tmp_path, result)
        assert record.reason.isprintable()
        assert "]0;owned" in record.reason
        write_records(tmp_path, [record])
        assert read_all(tmp_path) == [record]
    assert result_of(outcome_of(DataError("two\u00a0words\n next line"))).reason == "two words next line"
    for line in (_line(Verified(record, "differs", STEERS)), describe(unscored(reason=STEERS))):
        assert line.isprintable()


def test_scores_by_method_task_and_split() -> None:
    one, two = scored("b", "digits_class", seed=1), scored("a", "digits_other", seed=2, k=3)
    scores = score_array([one, two, unscored()])
    assert scores.sizes == {"method": 2, "task": 2, "split": 5}
    assert scores.sel({"method": "b", "task": "digits_class"}).values.tolist() == list(one.per_split)
    assert np.isnan(scores.sel({"method": "b", "task": "digits_other"})).all()
    assert int(scores.sel({"method": "a", "task": "digits_other"}).count()) == 3
    assert scores.sel(task="digits_class").metric.item() == "f1"


def test_no_scores_is_said() -> None:
    with pytest.raises(UsageError, match="no scores under the protocol 'ridge'"):
        score_array([scored()], "ridge")
