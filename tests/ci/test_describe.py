"""What plugins declare: asked in a sandbox, checked, and taken from main's catalogue where that is still true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci.changed import Touched
from ci.describe import CATALOG, catalog_bytes, describe, describe_all, plugin_keys
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.sandbox import Limits
from ci.stub_tree import read_json, read_rows, write_stub
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.specs import to_json
from tests.ci.helpers import Upstream
from tests.ci.prs import Change, both, change_file, edit, method, task, write_file
from tests.ci.test_sandbox import need_bubblewrap
from tests.contract.helpers import METHOD

CUBES = {"version": "1", "bands": ["grey/0"], "seasons": ["scene"]}


def row(**fields: Any) -> dict[str, Any]:
    """A good row of a description, with other fields."""
    return {"noun": "dataset", "spec": to_json(load_dataset("digits")), "cubes": CUBES} | fields


BAD_ROWS: dict[str, Any] = {
    "cubes that are a number": row(cubes=7),
    "cubes of which nothing is said": row(cubes=None),
    "cubes without a version": row(cubes={"bands": [], "seasons": []}),
    "a version that is a number": row(cubes={**CUBES, "version": 1}),
    "a version and an error": row(cubes={**CUBES, "error": "no"}),
    "bands that are text": row(cubes={**CUBES, "bands": "grey/0"}),
    "code that is no text": row(code=["x"]),
    "one field more": row(more=1),
    "text that cannot be written": row(cubes={"error": "\ud800"}),
    "a row that is no object": "dataset",
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_of_a_description_is_refused(name: str, tmp_path: Path) -> None:
    """Otherwise it would break what is done with all plugins together."""
    path = tmp_path / "describe.json"
    path.write_text(json.dumps([row(), row(cubes={"error": "no copy"})]))
    assert [item["cubes"]["error"] for item in read_rows(path)] == ["", "no copy"]
    path.write_text(json.dumps([BAD_ROWS[name]]))
    with pytest.raises(DataError, match="not a description"):
        read_rows(path)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN"])
def test_a_number_that_is_not_finite_is_refused_however_it_is_spelled(number: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(f'{{"x": [{number}]}}')
    with pytest.raises(DataError, match=number):
        read_json(tmp_path / "x.json")


def test_files_of_a_plugin_do_not_stand_in_the_way_of_its_description(tmp_path: Path) -> None:
    plugin, made = tmp_path / "plugin", tmp_path / "made"
    (plugin / "_describe.json").mkdir(parents=True)
    (plugin / "_describe.json" / "x.csv").touch()
    (plugin / "_made").touch()
    (made / "labels").mkdir(parents=True)
    write_stub(tmp_path / "stub", plugin, [row()], made)
    assert sorted(path.name for path in (tmp_path / "stub").iterdir()) == ["__init__.py", "_describe.json", "_made"]
    assert (tmp_path / "stub/_made/labels").is_dir()


BORROWED = """
from neuco_core import Method, Remote, hookimpl

@hookimpl
def neuco_methods():
    remote = Remote("pkg://neuco_tasks.digits/labels.csv", sha256="0" * 64)
    yield Method(id="plain", title="Borrowed", description="Not mine", files={"digits": remote}, license="MIT")
"""
METRIC = """@hookimpl
def neuco_metrics():
    from neuco_core import Metric
    yield Metric(id="plain", function=max)

@hookimpl
def neuco_methods"""
INIT = "neuco_methods/plain/__init__.py"
REFUSED: dict[str, tuple[Change, str]] = {
    "an import that crashes": (
        write_file(INIT, "raise RuntimeError('cheese')"),
        "neuco_methods/plain/__init__.py:1: RuntimeError: cheese",
    ),
    "labels of another plugin as embeddings": (write_file(INIT, BORROWED), "uses a file from elsewhere"),
    "a metric that takes part in scoring": (
        both(method, change_file(INIT, "@hookimpl\ndef neuco_methods", METRIC)),
        "code that takes part in scoring",
    ),
    "nothing": (both(method, change_file(INIT, "yield Method(", "yield from () and dict(")), "it registers nothing"),
}


def described(folder: Path, base: Path, scratch: Path, name: str = "neuco_methods/plain") -> PluginData:
    plugin = PluginData(Touched(*name.split("/"), "added"), folder / name, scratch / "made")
    describe(PluginSandbox(base, scratch / "scratch", Limits(), "bubblewrap"), plugin)
    return plugin


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_plugin_may_not_register_is_refused(name: str, upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
    change, words = REFUSED[name]
    change(tmp_path)
    (finding,) = described(tmp_path, upstream.base, tmp_path).findings
    assert (finding.check, finding.status, words in finding.detail) == ("import", "failed", True), finding


@pytest.fixture
def base(own_upstream: Upstream, tmp_path: Path) -> Path:
    """Main with its catalogue."""
    need_bubblewrap()
    boxes = PluginSandbox(own_upstream.base, tmp_path / "first", Limits(), "bubblewrap")
    (own_upstream.base / CATALOG).write_bytes(catalog_bytes(describe_all(boxes), boxes.base))
    return own_upstream.base


def test_main_is_asked_only_for_what_its_catalogue_does_not_know(base: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    boxes = PluginSandbox(base, tmp_path / "again", Limits(), "bubblewrap", tell=asked.append)
    first = describe_all(boxes)
    assert asked == []
    assert [plugin.touched.name for plugin in first] == ["digits", "averaging", "random"]
    assert catalog_bytes(first, base) == (base / CATALOG).read_bytes(), "made again, it is the same byte for byte"

    edit(base / "neuco_methods/random/__init__.py", 'title="', 'title="The ')
    plugins = describe_all(PluginSandbox(base, tmp_path / "edited", Limits(), "bubblewrap", tell=asked.append))
    assert asked == ["neuco_methods/random: describe"]
    assert plugins[-1].methods[0].title.startswith("The ")

    entries = json.loads((base / CATALOG).read_text())
    entries["plugins"]["neuco_tasks/digits"]["rows"][0]["cubes"] = {"error": "no local copy"}
    entries["plugins"]["neuco_methods/averaging"]["rows"] = [{"noun": "method", "spec": {"id": "random"}}]
    (base / CATALOG).write_text(json.dumps(entries))
    asked.clear()
    plugins = describe_all(PluginSandbox(base, tmp_path / "damaged", Limits(), "bubblewrap", tell=asked.append))
    assert [line.partition(":")[0] for line in asked] == [plugin.touched.folder for plugin in plugins]
    assert plugins[1].ids("method") == ("averaging", "averaging_notebook")


def test_the_key_of_a_plugin_changes_with_whatever_decides_what_it_declares(tmp_path: Path) -> None:
    for name, text in (("a", "x = 1"), ("b", "from neuco_tasks.a import x"), ("c", "import neuco_tasks.b")):
        write_file(f"neuco_tasks/{name}/__init__.py", text)(tmp_path)
    write_file("neuco_methods/m/__init__.py", METHOD)(tmp_path)
    write_file("neuco_core/specs.py", "y = 1")(tmp_path)

    def changed_by(name: str, text: str) -> set[str]:
        before = plugin_keys(tmp_path)
        write_file(name, text)(tmp_path)
        after = plugin_keys(tmp_path)
        return {folder.partition("/")[2] for folder, key in after.items() if before.get(folder) != key}

    assert changed_by("neuco_tasks/a/__init__.py", "x = 2") == {"a", "b", "c"}, "also of those that import it"
    assert changed_by("neuco_tasks/c/weights.bin", "w") == {"c"}
    assert changed_by("neuco_methods/m/helper.py", "z = 1") == {"m"}
    assert changed_by("neuco_core/specs.py", "y = 2") == {"a", "b", "c", "m"}
    assert changed_by("registry/pins.json", "{}") == {"a", "b", "c", "m"}
    assert changed_by("docs/x.md", "") == set()


def test_a_catalogue_that_comes_with_a_pull_request_is_not_used(base: Path, tmp_path: Path) -> None:
    """It is protected, and whoever judges takes main's."""
    head = tmp_path / "head"
    task(head)
    write_file(CATALOG, json.dumps({"plugins": {"neuco_tasks/good": {"key": "0", "rows": []}}, "schema": 1}))(head)
    plugin = described(head, base, tmp_path, "neuco_tasks/good")
    assert (plugin.ids("task"), plugin.ids("dataset")) == (("good",), ("good",))
