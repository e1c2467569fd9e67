"""Every shipped plugin passes its own tests in the sandbox, as it must in a pull request that touches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.changed import TREES
from ci.extract import run_tests
from ci.plugin_sandbox import PluginSandbox
from ci.sandbox import Limits
from neuco_core.errors import DataError
from tests.ci.helpers import ROOT
from tests.ci.test_sandbox import need_bubblewrap
from tests.parts import missing

QUICK = ("olinda", "averaging")  # all run their own tests outside of a sandbox anyway
# Checks that compare nothing there: two controls have no baseline; a sandbox has no other task of the same dataset.
SKIPS = {"mini": 2, "digits_even": 1}
FOLDERS = [path.parent for tree in TREES for path in sorted((ROOT / tree).glob("*/__init__.py"))]
PLUGINS = [
    pytest.param(
        folder, id=f"{folder.parent.name}-{folder.name}", marks=[] if folder.name in QUICK else [pytest.mark.slow]
    )
    for folder in FOLDERS
]


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> PluginSandbox:
    need_bubblewrap()
    return PluginSandbox(ROOT, tmp_path_factory.mktemp("scratch"), Limits())


@pytest.mark.parametrize("folder", PLUGINS)
def test_its_tests_pass_in_the_sandbox(folder: Path, boxes: PluginSandbox) -> None:
    plugin = boxes.plugin(folder.parent.name, folder.name, "changed")
    try:
        run_tests(boxes, plugin)
    except DataError as error:
        missing("package index", f"the environment of {folder.name}", str(error))
    (finding,) = plugin.findings
    assert finding.status == "ok", finding.detail
    if not finding.detail.endswith(f" {SKIPS.get(folder.name, 0)} skipped"):
        missing(folder.name, "a package that its tests need", finding.detail)
