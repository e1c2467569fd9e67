"""Every shipped plugin passes its own tests in the sandbox, as it must in a pull request that touches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.changed import TREES, Touched
from ci.extract import Contribution, Extractor
from ci.sandbox import Limits
from tests.ci.helpers import ROOT
from tests.ci.test_sandbox import need_bubblewrap
from tests.parts import missing

SLOW = ("mini",)  # 1,200 cubes are made and 12 tasks held to the contract, in half a minute
FOLDERS = [path.parent for tree in TREES for path in sorted((ROOT / tree).glob("*/__init__.py"))]
PLUGINS = [
    pytest.param(folder, id=f"{folder.parent.name}-{folder.name}", marks=[pytest.mark.slow] * (folder.name in SLOW))
    for folder in FOLDERS
]


@pytest.fixture(scope="module")
def extractor(tmp_path_factory: pytest.TempPathFactory) -> Extractor:
    need_bubblewrap()
    return Extractor(ROOT, ROOT, tmp_path_factory.mktemp("scratch"), Limits(), "bubblewrap")


@pytest.mark.parametrize("folder", PLUGINS)
def test_its_tests_pass_in_the_sandbox(folder: Path, extractor: Extractor) -> None:
    work = Contribution(Touched(folder.parent.name, folder.name, "changed"), folder)
    extractor._tests(work)
    (finding,) = work.findings
    assert finding.status == "ok", finding.detail
    if not finding.detail.endswith(" 0 skipped"):
        missing(folder.name, "a package that its tests need", finding.detail)
