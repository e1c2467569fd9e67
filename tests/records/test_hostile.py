"""Records that a stranger made to do harm: each is refused in one line that names the file, the field and a way out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from neuco_core.cli import cli
from neuco_core.cli.score_show import describe
from neuco_core.cli.verify import _line
from neuco_core.errors import DataError, NeucoError
from neuco_core.jsonio import canonical
from neuco_core.plugins.catalog import load_method, load_protocol, load_task
from neuco_core.records.model import digest, record_bytes
from neuco_core.records.store import (
    LARGEST_FILE,
    NOT_A_FILE,
    read_all,
    read_head,
    read_heads,
    read_record,
    record_path,
    write_record,
)
from neuco_core.runs.messages import Failed
from neuco_core.runs.plan import make_plan
from neuco_core.runs.run import make_record
from neuco_core.runs.verify import Verified
from neuco_core.runs.worker_steps import result_of
from neuco_core.scoring.cell import outcome_of
from tests.records.examples import scored, unscored

HUGE = "1" + "0" * 400
DEEP = "[" * 900 + "]" * 900
HALF = '"\\ud800"'
STEERS = "\x1b]0;owned\x07 \x9b2J \u202etxt.exe\x7f"  # a title, a cleared screen, an order of reading


def text_of(**changes: str) -> str:
    """A record with these texts as values of fields, and the digest that fits."""
    values = json.loads(record_bytes(scored()))
    lines = {name: f'"{name}": {canonical(value)}' for name, value in values.items()}
    lines |= {name: f'"{name}": {value}' for name, value in changes.items()}
    text = "{\n" + ",\n".join(lines[name] for name in sorted(lines)) + "\n}\n"
    return text.replace(values["digest"], digest(text.encode()))


def inputs_with(name: str, text: str) -> str:
    inputs = {**json.loads(record_bytes(scored()))["inputs"], name: "HERE"}
    return canonical(inputs).replace('"HERE"', text)


# What is in the file → which field the error must name.
HOSTILE: dict[str, tuple[dict[str, str], str]] = {
    "digits as a bound": ({"lower": HUGE}, "bad record: a whole number of more than"),
    "digits as a version": ({"method_version": HUGE}, "bad record: a whole number of more than"),
    "digits as a count": ({"samples": f'{{"used":{HUGE}}}'}, "bad record: a whole number of more than"),
    "digits as a dimension": ({"dim": "-" + HUGE}, "bad record: a whole number of more than"),
    "one bit too many": ({"dim": str(2**63)}, "bad record: a whole number of more than"),
    "digits in provenance": ({"provenance": f'{{"a":{{"b":{HUGE}}}}}'}, "bad record: a whole number of more than"),
    "digits in inputs": ({"inputs": inputs_with("protocol.k", HUGE)}, "bad record: a whole number of more than"),
    "more digits than Python reads": ({"lower": "9" * 100_000}, "bad record: a whole number of more than"),
    "a deep provenance": ({"provenance": f'{{"a":{DEEP}}}'}, "bad provenance: lists or objects more than 20 deep"),
    "deep inputs": ({"inputs": inputs_with("scorer", DEEP)}, "bad inputs: lists"),
    "deep splits": ({"per_split": DEEP}, "bad per_split: lists or objects"),
    "deeper than Python reads": ({"reason": "[" * 100_000 + "]" * 100_000}, "bad record: lists or objects too deep"),
    "half a character": ({"reason": HALF}, "bad reason: 'utf-8' codec can't encode"),
    "half a character as an id": ({"method": HALF}, "bad method: 'utf-8' codec"),
    "half a character in inputs": ({"inputs": inputs_with("scorer", HALF)}, "bad inputs: 'utf-8' codec"),
    "half a character in provenance": ({"provenance": f'{{"a":[{HALF}]}}'}, "bad provenance: 'utf-8' codec"),
    "half a character as a name": ({"provenance": f'{{{HALF}:1}}'}, "bad provenance: 'utf-8' codec"),
    "a reason that steers": ({"reason": json.dumps(STEERS)}, "bad reason; expected text without control characters"),
    "a protocol that steers": ({"protocol": json.dumps("ridge+x=\x9b2J")}, "bad protocol"),
    "a protocol of two lines": ({"protocol": json.dumps("ridge+x=\ny")}, "bad protocol"),
    "an id of two lines": ({"method": json.dumps("random\n")}, "bad method; expected text without control"),
    "an input that steers": ({"inputs": inputs_with("scorer", json.dumps(STEERS))}, "bad inputs; expected text"),
    "an input's name that steers": ({"inputs": inputs_with("protocol.\x9b2J", "1")}, "bad inputs; expected text"),
    "a metric's name that steers": ({"metrics": json.dumps({STEERS: [0.5] * 5})}, "bad metrics; expected text"),
    "NaN": ({"mean": "NaN"}, "bad record: NaN is not JSON"),
    "NaN inside": ({"metrics": '{"mse":[0.5,-Infinity]}'}, "bad record: -Infinity is not JSON"),
    "beyond all floats": ({"provenance": '{"a":1e999}'}, "bad provenance: Out of range float"),
    "a name twice": ({"samples": '{"labels":41,"used":40,"used":40}'}, "bad samples: a name that is there twice"),
    "a field twice": ({"lower": '0.0,\n"lower": 0.0'}, "bad mean: a name that is there twice"),
    "broken JSON": ({"mean": "0.5.5"}, "bad mean: "),
    "a long name": ({"mean": '0.5,\n"' + "x" * 10_000 + '": 1'}, "bad record: Object contains unknown field `xxx"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record_is_refused_by_file_and_field(name: str, tmp_path: Path) -> None:
    changes, said = HOSTILE[name]
    path = tmp_path / "results" / "random" / "digits_class.json"
    path.parent.mkdir(parents=True)
    path.write_text(text_of(**changes))
    with pytest.raises(DataError) as caught:
        read_record(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: {said}")
    assert "Delete the file and run `neuco score --method random --task digits_class --protocol neuco-2025`" in told
    assert len(told) < 1000 + len(str(path))
    told.encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_plan_over_a_hostile_record_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, _ = HOSTILE[name]
    path = tmp_path / "results" / "random" / "digits_class.json"
    path.parent.mkdir(parents=True)
    path.write_text(text_of(**changes))
    read_head(str(path))
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    for command in (
        ["explain", "random", "digits_class"],
        ["score", "--dry-run", "--method", "random", "--task", "digits_class"],
    ):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, (done.output, done.exception)
        done.output.encode()


def test_bytes_that_are_no_text_are_refused_by_field(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text_of().encode().replace(b'\n"kind": "', b'\n"kind": "\xff'))
    with pytest.raises(DataError, match=r"x\.json: bad kind: .*utf-8"):
        read_record(path)


@pytest.mark.parametrize("line", ['"status": ["ok"]', '"inputs": []', '"reason": 5'])
def test_heads_of_a_strange_form_are_a_problem_and_no_accident(line: str, tmp_path: Path) -> None:
    name = line.partition(":")[0].strip('"')
    path = tmp_path / "x.json"
    path.write_text(text_of(**{name: line.partition(": ")[2]}))
    assert read_head(str(path)).problem


def stray(folder: Path, name: str) -> Path:
    path = folder / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


@pytest.mark.parametrize(
    "name", ["stray.json", "random/sub/x.json", "random/x.JSON", "random/notes.txt", "random/x.json.bak"]
)
def test_what_is_no_record_is_refused_in_the_folder_of_records(name: str, tmp_path: Path) -> None:
    write_record(scored(), tmp_path)
    path = stray(tmp_path, name)
    named = path if path.parent.name != "sub" else path.parent
    with pytest.raises(DataError, match=re.escape(f"{named}: not a record, in the folder of records")) as caught:
        read_all(tmp_path)
    assert "delete it" in str(caught.value)


def test_a_folder_of_records_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(DataError, match="the folder of records cannot be read"):
        read_all(tmp_path)


@pytest.mark.parametrize("name", [".gitattributes", "random/.digits_class.json.abc123", ".hidden/x.json"])
def test_hidden_files_such_as_a_killed_run_leaves_are_passed_over(name: str, tmp_path: Path) -> None:
    record = scored()
    write_record(record, tmp_path)
    stray(tmp_path, name)
    assert read_all(tmp_path) == [record]
    assert len(read_heads(tmp_path)) == 1


WAYS_OUT: dict[str, Callable[[Path], Any]] = {
    "another schema": lambda path: path.write_text('{"schema": 7.5}'),
    "no record": lambda path: path.write_text("[]"),
    "edited": lambda path: path.write_bytes(path.read_bytes().replace(b'"dim": 64', b'"dim": 65')),
    "another place": lambda path: path.rename(path.with_name("other.json")),
    "too large": lambda path: path.write_bytes(b" " * 4_000_001),
}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_every_refusal_says_what_to_do(name: str, tmp_path: Path) -> None:
    WAYS_OUT[name](write_record(scored(), tmp_path))
    with pytest.raises(NeucoError) as caught:
        read_all(tmp_path)
    assert "elete" in caught.value.hint


def a_pipe(path: Path, true: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path, true: Path) -> None:
    path.symlink_to(true)


def a_link_to_a_device(path: Path, true: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_nothing(path: Path, true: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [a_link, a_link_to_nothing, a_pipe, a_link_to_a_device])
def test_what_is_no_file_of_its_own_is_never_read(
    make: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = write_record(scored(), tmp_path / "other")
    path = record_path(tmp_path, *scored().key)
    path.parent.mkdir(parents=True)
    make(path, true)
    assert [head.problem for head in read_heads(tmp_path).values()] == [NOT_A_FILE]
    with pytest.raises(DataError, match="not a record, in the folder of records"):
        read_all(tmp_path)
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    told = CliRunner().invoke(cli, ["explain", "random", "digits_class", "--protocol", "neuco-2025"])
    assert ": stale (there is a file, and it cannot be used)" in told.output
    assert NOT_A_FILE in told.output


def test_a_pipe_or_a_device_that_is_to_be_verified_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(DataError, match="not a regular file"):
            read_record(path)


def test_a_file_too_large_for_a_record_is_not_read_for_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(record_bytes(scored()))
    assert not read_head(str(path)).problem
    os.truncate(path, LARGEST_FILE + 1)
    assert read_head(str(path)).problem == "too large for a record; expected at most 4000000 bytes"


def test_nothing_that_steers_a_terminal_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may sign what the strict reader would refuse, and a plan shows its reason."""
    method, task, protocol = load_method("random"), load_task("digits_class"), load_protocol("neuco-2025")
    cell = make_plan([method], [task], protocol, tmp_path).cells[0]
    record = make_record(cell, Failed("crash", "HERE"), "local")
    path = write_record(record, tmp_path)
    path.write_bytes(record_bytes(msgspec.structs.replace(record, reason=STEERS)))
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    plan = ["score", "--dry-run", "--method", "random", "--task", "digits_class", "--protocol", "neuco-2025"]
    explain = ["explain", "random", "digits_class", "--protocol", "neuco-2025"]
    for words in (plan, explain):
        said = CliRunner().invoke(cli, words).output
        assert "]0;owned" in said
        assert said.replace("\n", "").isprintable()
        as_json = CliRunner().invoke(cli, [*words, "--json"]).output
        assert as_json.replace("\n", "").isprintable()
        assert json.dumps(STEERS)[1:-1].lower() in as_json.lower(), "the same value, escaped"
    for line in (_line(Verified(record, "differs", STEERS), True), describe(unscored(reason=STEERS))):
        assert line.isprintable()


def test_reasons_of_failures_are_recorded_without_what_steers_a_terminal(tmp_path: Path) -> None:
    cell = make_plan([load_method("random")], [load_task("digits_class")], load_protocol("neuco-2025"), tmp_path)
    results = (
        result_of(outcome_of(DataError(STEERS))),
        result_of(outcome_of(ModuleNotFoundError(STEERS))),
        Failed("crash", STEERS * 999),
    )
    for result in results:
        record = make_record(cell.cells[0], result, "local")
        assert record.reason.isprintable()
        assert "]0;owned" in record.reason
        assert read_record(write_record(record, tmp_path)) == record
    assert result_of(outcome_of(DataError("two\u00a0words\n next line"))).reason == "two words next line"
