"""Records may grow: all 360 that shipped with schema 1 are read as today's, and stay so when a field is added."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from msgspec import structs

from neuco_core.errors import DataError
from neuco_core.jsonio import hashed
from neuco_core.records.model import SCHEMA, layout, record_bytes
from neuco_core.records.store import parse_record, read_all, read_head
from neuco_core.runs.plan import stale_records
from tests.records.examples import scored

READ = """
import sys
from pathlib import Path
from neuco_core.records.store import read_all
records = read_all(Path(sys.argv[1]))
print(len(records), {record.colour for record in records})
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with the records of schema 1."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(Path(__file__).with_name("schema-1.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_all_of_schema_1_are_read_as_today_and_stale_only_where_code_changed(old: Path) -> None:
    records = read_all(old)
    assert len(records) == 360
    assert {record.schema for record in records} == {SCHEMA}
    reasons = set(stale_records(record for record in records if record.ok).values())
    encoder = "the embeddings' file, or the encoder's code, parameters or data, changed"
    assert reasons == {"the probe changed", f"{encoder}; the probe changed"}, "ridge 2; averaging and mosaiks"
    for record in records:
        assert record.fingerprint == hashed(record.inputs)
        assert parse_record(record_bytes(record), "again") == record, "what was upgraded can be written"


def test_upgrading_changes_no_number(old: Path) -> None:
    by_key = {record.key: record for record in read_all(old)}
    for path in old.rglob("*.json"):
        values = json.loads(path.read_text())
        record = by_key[values["method"], values["task"], values["protocol"]]
        assert list(record.per_split) == values["per_split"]
        assert (record.mean, record.std, record.q) == (values["mean"], values["std"], values["q"])
        assert record.splits == values["folds"]
        head = read_head(str(path))
        assert (head.status, head.inputs) == (record.status, record.inputs)


def test_they_are_read_after_a_field_is_added(old: Path, root: Path, tmp_path: Path) -> None:
    """In a copy of the code with one more field, which has a default."""
    shutil.copytree(root / "neuco_core", tmp_path / "neuco_core", ignore=shutil.ignore_patterns("__pycache__"))
    model = tmp_path / "neuco_core" / "records" / "model.py"
    text, count = re.subn(
        r"\n    baseline: bool = False\n", '\n    baseline: bool = False\n    colour: str = "none"\n', model.read_text()
    )
    assert count == 1
    model.write_text(text)
    here = root / "registry"
    for registry, count in ((old, 360), (here, len(read_all(here)))):
        command = [sys.executable, "-c", READ, registry]
        env = {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.stdout == f"{count} {{'none'}}\n", done.stderr


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (3, "made by a newer version of neuco; expected schema 1 to 2, got schema 3"),
        (0, "not a record of a known schema"),
    ],
)
def test_other_schemas_are_refused_by_name(schema: int, said: str, tmp_path: Path) -> None:
    data = layout({**scored().to_json(), "schema": schema})
    with pytest.raises(DataError, match=said):
        parse_record(data, "x.json")
    path = tmp_path / "x.json"
    path.write_bytes(data)
    assert said.partition(";")[0] in read_head(str(path)).problem


def test_a_record_of_schema_1_that_was_edited_is_refused(old: Path) -> None:
    path = next(path for path in sorted(old.rglob("*.json")) if '"status": "ok"' in path.read_text())
    edited = path.read_bytes().replace(b'"upper": 1.0', b'"upper": 2.0')
    assert edited != path.read_bytes()
    with pytest.raises(DataError, match="edited after it was written"):
        parse_record(edited, path)


def test_an_encoder_that_schema_1_knew_otherwise_is_stale(old: Path) -> None:
    record = next(record for record in read_all(old) if record.ok and record.method == "pca")
    values = json.loads(record_bytes(record))
    del values["digest"]
    values |= {"schema": 1, "folds": values.pop("splits")}
    del values["registered"]
    values["inputs"] |= {
        "metric_code": "",
        "probe_code": "",
        "splitter_code": "",
        "scorer": 1,
        "embeddings_from": "0" * 64,
    }
    values["fingerprint"] = hashed(values["inputs"])
    stranger = parse_record(layout(values), "x")
    assert "encoder's code" in stale_records([stranger])[stranger.key]


@pytest.mark.parametrize("inputs", [None, 5, [], "x"])
def test_inputs_that_are_no_object_are_refused(inputs: object) -> None:
    with pytest.raises(DataError, match=r"schema|inputs"):
        parse_record(layout({"schema": 1, "inputs": inputs}), "x.json")


def test_a_record_that_calls_a_registered_method_a_file_is_stale(old: Path) -> None:
    record = next(record for record in read_all(old) if record.ok and record.method == "pca")
    forged = structs.replace(record, registered=False)
    assert "is a registered method now" in stale_records([forged])[forged.key]
