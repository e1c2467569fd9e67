"""The pages on GEO-Bench: every command is run, and their figures are those of the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from benchmarks.geobench import HEADS
from neuco_core.plugins.catalog import load_board
from neuco_extensions.geobench.command import geobench
from neuco_extensions.geobench.facts import CAPABILITIES, COLUMNS, KEYS, RMSE_FACTOR
from neuco_extensions.geobench.iqm import GEOBENCH, OURS
from neuco_extensions.geobench.search import INNER, SHARE, TEST_SIZE
from tests import console
from tests.fetch.helpers import own_settings
from tests.geobench.parts import spoiled, write


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "docs/howto/geobench.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def why(root: Path) -> str:
    return (root / "docs/why/geobench.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_command_prints_what_the_page_shows(
    text: str, root: Path, committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    own_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(root))
    shutil.copytree(committed_registry / "geobench", tmp_path / "registry/geobench")
    shutil.copytree(committed_registry / "suites", tmp_path / "registry/suites")
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    write(tmp_path / "mine")

    def spoil(rows: list[dict[str, str]], info: dict[str, object]) -> None:
        rows[0]["lr"] = "0,0003"
        rows[7]["test metric"] = "61.2"
        info["Code Repository Link"] = info.pop("Code Repository Link ")

    spoiled(tmp_path / "broken", spoil)
    failures = console.play(text, tmp_path, {"HOME": str(tmp_path / "home"), "COLUMNS": "200"}, {})
    assert not failures, "\n\n".join(failures)


def test_every_command_is_run(text: str) -> None:
    run = [step.command for step in console.steps(text)]
    assert [name for name in geobench.commands if not any(f"neuco geobench {name}" in line for line in run)] == []
    assert any("neuco geobench tune" in line for line in run)


def test_figures_are_those_of_the_code(text: str, why: str, root: Path) -> None:
    tables = "".join((root / f"docs/ref/{name}.md").read_text(encoding="utf-8") for name in ("boards", "formats"))
    plain = " ".join((text + why + tables).split())
    assert f"{len(COLUMNS)} columns" in plain
    assert all(f"`{column}`" in plain for column in COLUMNS)
    assert f"{len(KEYS)} keys" in plain
    assert f"1 − rmse × {RMSE_FACTOR}" in plain
    assert f"{OURS:,} resamples" in plain
    assert f"`{GEOBENCH}`" in plain
    assert f"{len(CAPABILITIES)} capabilities" in plain
    assert f"{100 * TEST_SIZE:.0f} % of the samples" in plain
    assert f"{INNER} splits" in plain
    assert f"{100 * SHARE:.0f} % of the training part" in plain
    options = set(re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE))
    assert set(load_board("geobench").options) <= options


def test_the_table_of_coverage_is_one_that_the_benchmark_prints(why: str, root: Path) -> None:
    header = why[why.index("| capability | ± published") :].partition("\n")[0]
    assert header == f"| {' | '.join(HEADS)} |"
    _, printed = (root / "benchmarks/printed/geobench.txt").read_text(encoding="utf-8").split(f"{header}\n")
    _, *lines = printed.splitlines()
    assert [row for row in re.findall(r"^\| [A-Zal].*\d.*$", why, re.MULTILINE) if row not in lines] == []
    rows = {
        cells[1]: dict(zip(HEADS, cells[1:], strict=False)) for cells in (re.split(r"\s*\|\s*", ln) for ln in lines)
    }
    assert list(rows) == [*CAPABILITIES, "all"]
    assert all(93 <= float(row["interval"].rstrip("%")) <= 97 for row in rows.values())
    assert all(float(row["ranks"].partition("%")[0]) > 95 for row in rows.values())
