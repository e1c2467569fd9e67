"""Ids of main and of a pull request, compared; and what a pull request may not have too much of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci.changed import Changes, Touched
from ci.plugin_sandbox import PluginData
from ci.report import MOST_FINDINGS, PluginReport, Report, cut
from ci.rules import MOST_PLUGINS, compare_ids, general
from neuco_core.contract.contract import Finding, Status
from tests.ci.helpers import ROOT
from tests.ci.prs import write_file


def plugin(name: str, *ids: str, how: str = "kept") -> PluginData:
    rows = [{"noun": "dataset", "spec": {"id": spec}} for spec in ids]
    return PluginData(Touched("neuco_tasks", name, how), Path(), Path(), rows=rows)


MAIN = plugin("land", "land_cover")


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            [MAIN, plugin("land-cover", "land-cover", how="added")],
            "dataset 'land_cover' is registered by neuco_tasks/land and as 'land-cover' by neuco_tasks/land-cover",
        ),
        (
            [plugin("land", "land_cover", "land-cover", how="changed")],
            "dataset 'land_cover' is registered by neuco_tasks/land and as 'land-cover' by neuco_tasks/land",
        ),
        (
            [plugin("land", "land-cover", how="changed")],
            "dataset 'land_cover' was registered by neuco_tasks/land and is 'land-cover' now",
        ),
        (
            [plugin("land", how="changed"), plugin("land-cover", "land-cover", how="added")],
            "dataset 'land_cover' moves from neuco_tasks/land to neuco_tasks/land-cover",
        ),
        ([plugin("land", "land_cover", how="changed")], ""),
    ],
)
def test_a_dataset_is_not_taken_by_another_spelling(after: list[PluginData], words: str) -> None:
    assert [f.detail for f in compare_ids([MAIN], after)] == ([words] if words else [])


def test_more_plugins_than_anybody_reads_are_refused() -> None:
    many = tuple(Touched("neuco_methods", f"m{i}", "added") for i in range(MOST_PLUGINS + 1))
    assert list(general(Changes("a", "b", many[1:]))) == []
    (finding,) = general(Changes("a", "b", many))
    assert (finding.check, finding.status) == ("plugins", "failed")


def test_findings_beyond_what_a_report_holds_are_counted_and_fail() -> None:
    many = [Finding("a", "b", "ok", "c")] * (MOST_FINDINGS + 5)
    shown = cut(many)
    assert (len(shown), shown[-1].status) == (MOST_FINDINGS, "failed")
    assert "6 more" in shown[-1].detail
    assert cut(many[:3]) == tuple(many[:3])


@pytest.mark.parametrize(
    ("check", "status", "green"),
    [("tests", "ok", False), ("method-card", "skipped", False), ("method-card", "ok", True), ("score", "ok", True)],
)
def test_what_a_plugin_says_of_itself_is_no_evidence(check: str, status: Status, green: bool) -> None:
    findings = (Finding("import", "m", "ok", "registers method m"), Finding(check, "m", status, "words"))
    made = PluginReport("neuco_methods", "m", "added", (), ("m",), findings)
    assert Report("0" * 40, "1" * 40, "bubblewrap", (made,), (), (), (), 1.0, 1).green is green


BRINGS = """
from neuco_core import Dataset, hookimpl

@hookimpl
def neuco_datasets():
    yield Dataset(id="{name}", bands=("grey/0",), seasons=("scene",), license="MIT")
"""


def test_whatever_is_wrong_only_with_a_touched_plugin_is_its_problem(tmp_path: Path) -> None:
    """Also if the problem bears another's name, as the first of two spellings does; one of main alone is not its."""
    for name, text in (("zz_ours", BRINGS), ("zz-ours", BRINGS), ("zz_broken", "1 / 0")):
        write_file(f"neuco_tasks/{name}/__init__.py", text.format(name=name))(tmp_path)
    code = "from ci.evaluate import problems; print(*(p.error for p in problems(['neuco_tasks.zz-ours'])), sep='\\n')"
    path = f"{ROOT}{os.pathsep}{tmp_path}"
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    (problem,) = done.stdout.splitlines()
    assert "datasets 'zz-ours' and 'zz_ours' differ only in - and _" in problem
