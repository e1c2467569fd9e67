"""What plugins declare: asked in a sandbox, checked, and taken from main's catalogue where that is still true."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ci.describe import CATALOG, MOST_SPECS, catalog_bytes, describe, describe_all, plugin_keys
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.rules import compare_ids
from ci.sandbox import Limits
from ci.stub_tree import read_json, read_rows, write_stub
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_dataset, load_method
from neuco_core.specs import to_json
from tests.ci.helpers import Upstream, edit, method, plugin_data, write_file
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
    write_file("forged/_made/embeddings/plain/digits.npy", "x")(tmp_path)
    write_stub(tmp_path / "again", tmp_path / "forged", [row()], made)
    assert [path.name for path in (tmp_path / "again/_made").rglob("*")] == ["labels"]


def method_row(**fields: Any) -> dict[str, Any]:
    spec = to_json(load_method("averaging")) | {"id": "plain", "encoder": True}
    return {"noun": "method", "spec": spec | fields, "code": "x"}


BORROWED = {"url": "pkg://neuco_tasks.digits/labels.csv", "sha256": "0" * 64}
REFUSED = {
    "labels of another plugin as embeddings": (
        [method_row(encoder=False, files={"digits": BORROWED})],
        "uses a file from elsewhere",
    ),
    "a metric that takes part in scoring": ([method_row() | {"noun": "metric"}], "code that takes part in scoring"),
    "the id of another plugin": ([method_row(id="random")], "'random' is outside the plugin 'plain'"),
    "too much": ([method_row()] * (MOST_SPECS + 1), "it registers too much"),
    "nothing": ([], "it registers nothing"),
}


class Answering(PluginSandbox):
    """In place of the sandbox an answer."""

    def __init__(self, folder: Path, rows: Any) -> None:
        super().__init__(folder, folder, Limits())
        (folder / "describe.json").write_text(json.dumps(rows))
        (folder / "imports.json").write_text("[]")

    def inside(self, plugin: PluginData, step: str, *arguments: str, **read: Path) -> Path:
        return self.base


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_plugin_may_not_register_is_refused(name: str, tmp_path: Path) -> None:
    rows, message = REFUSED[name]
    plugin = plugin_data(at=tmp_path)
    describe(Answering(tmp_path, rows), plugin)
    (finding,) = plugin.findings
    assert (finding.check, finding.status, message in finding.detail) == ("import", "failed", True), finding
    assert plugin.rows == []


def test_a_plugin_is_asked_in_a_sandbox_and_says_where_it_is_wrong(upstream: Upstream, tmp_path: Path) -> None:
    method(tmp_path)
    boxes = PluginSandbox(upstream.base, tmp_path / "scratch", Limits())
    plugins = [plugin_data(how=how, at=tmp_path / "neuco_methods/plain") for how in ("added", "changed")]
    describe(boxes, plugins[0])
    write_file("neuco_methods/plain/__init__.py", "raise RuntimeError('cheese')")(tmp_path)
    describe(PluginSandbox(upstream.base, tmp_path / "again", Limits()), plugins[1])
    assert [plugin.findings[0].detail for plugin in plugins] == [
        "registers method plain",
        "RuntimeError: cheese (neuco_methods/plain/__init__.py:1)",
    ]


def test_main_is_asked_only_for_what_its_catalogue_does_not_know(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Path(shutil.copytree(upstream.base, tmp_path / "base", ignore=shutil.ignore_patterns(".git")))
    asked: list[str] = []
    monkeypatch.setattr("ci.describe.describe", lambda boxes, plugin: asked.append(plugin.touched.name))

    def plugins() -> list[PluginData]:
        asked.clear()
        return describe_all(PluginSandbox(base, tmp_path / "scratch", Limits()))

    first = plugins()
    assert asked == []
    assert [plugin.touched.name for plugin in first] == ["digits", "averaging", "random"]
    assert catalog_bytes(first, base) == (base / CATALOG).read_bytes(), "made again, it is the same byte for byte"
    edit(base / "neuco_methods/random/__init__.py", 'title="', 'title="The ')
    plugins()
    assert asked == ["digits", "random"], "a task may import what a method has"
    base = Path(shutil.copytree(upstream.base, tmp_path / "again", ignore=shutil.ignore_patterns(".git")))
    entries = json.loads((base / CATALOG).read_text())
    entries["plugins"]["neuco_tasks/digits"]["rows"][0]["cubes"] = {"error": "no local copy"}
    entries["plugins"]["neuco_methods/averaging"]["rows"] = [{"noun": "method", "spec": {"id": "random"}}]
    (base / CATALOG).write_text(json.dumps(entries))
    plugins()
    assert asked == ["digits", "averaging"], "what was not there may be here, what is damaged is made anew"
    (base / CATALOG).write_text("{")
    plugins()
    assert asked == ["digits", "averaging", "random"]


def test_whoever_had_an_id_when_it_was_published_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newcomer is left out, and nobody else: not in a pull request of others, nor where records are written."""
    ids = {"soil": ["soil"], "soil_ph": ["soil_ph"], "wood": ["wood"]}

    def answer(boxes: PluginSandbox, plugin: PluginData) -> None:
        names = ids[plugin.touched.name]
        plugin.problem = "" if names else "it cannot be asked"
        plugin.declare([method_row(id=name) for name in names])

    def plugins() -> list[PluginData]:
        for name in ids:
            write_file(f"neuco_methods/{name}/__init__.py", f"{ids}")(tmp_path)
        described = describe_all(PluginSandbox(tmp_path, tmp_path / "scratch", Limits()))
        write_file(CATALOG, catalog_bytes(described, tmp_path).decode())(tmp_path)
        return described

    def left_out() -> dict[str, str]:
        return {plugin.touched.name: plugin.problem for plugin in plugins() if plugin.problem}

    monkeypatch.setattr("ci.describe.describe", answer)
    published = plugins()
    ids["soil"].append("soil-ph")
    assert left_out() == {"soil": "it registers the method 'soil-ph', and so does neuco_methods/soil_ph"}
    ids["wood"].append("wood_dry")
    assert list(compare_ids(published, plugins())) == []
    ids["soil_ph"] = []
    assert set(left_out()) == {"soil", "soil_ph"}, "an id is not free while its plugin is silent"
    assert set(left_out()) == {"soil", "soil_ph"}, "nor later"
    ids |= {"soil_ph": ["soil_ph"], "new": ["new_a"], "new_a": ["new_a"]}
    assert set(left_out()) == {"soil", "new", "new_a"}, "of two newcomers neither"
    ids["soil"].remove("soil-ph")
    assert set(left_out()) == {"new", "new_a"}


def test_the_key_of_a_plugin_changes_with_whatever_decides_what_it_declares(tmp_path: Path) -> None:
    for name in "abc":
        write_file(f"neuco_tasks/{name}/__init__.py", "x = 1")(tmp_path)
    write_file("neuco_methods/m/__init__.py", METHOD)(tmp_path)
    write_file("neuco_core/specs.py", "y = 1")(tmp_path)

    def changed_by(name: str, text: str) -> set[str]:
        before = plugin_keys(tmp_path)
        write_file(name, text)(tmp_path)
        after = plugin_keys(tmp_path)
        return {folder.partition("/")[2] for folder, key in after.items() if before.get(folder) != key}

    assert changed_by("neuco_tasks/a/__init__.py", "x = 2") == {"a", "b", "c"}, "which may import it"
    assert changed_by("neuco_tasks/c/weights.bin", "w") == {"c"}
    assert changed_by("neuco_methods/m/helper.py", "z = 1") == {"a", "b", "c", "m"}
    assert changed_by("neuco_methods/m/weights.bin", "w") == {"m"}
    assert changed_by("neuco_core/specs.py", "y = 2") == {"a", "b", "c", "m"}
    assert changed_by("registry/pins.json", "{}") == {"a", "b", "c", "m"}
    assert changed_by("docs/x.md", "") == set()
