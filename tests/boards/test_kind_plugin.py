"""A new kind of board with a column of its own, as an outside package: every view shows it, neuco is not changed."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.comment import _ranks
from neuco_core.boards.build import build_board
from neuco_core.boards.model import Column, Ranked
from neuco_core.boards.store import board_path
from neuco_core.errors import PluginError, UsageError
from neuco_core.plugins import catalog
from neuco_core.records.store import read_all, write_records
from neuco_core.specs import BoardKind
from tests.boards.helpers import make_records, make_suite, real_record
from tests.boards.test_cli import TASKS, registry, run
from tests.command import neuco_here
from tests.installed import install
from tests.site.conftest import Reader, reading

__all__ = ["registry"]  # the fixture
PLUGIN = Path(__file__).parent / "outside/neuco_wins.py"


@pytest.fixture
def package(tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, installed; and the suite ``trial`` of its kind, with an option of the kind."""
    folder = tmp_path / "site-packages"
    install(folder, "neuco_wins", PLUGIN.read_text(encoding="utf-8"), "boards")
    for task in TASKS:
        write_records(registry, [real_record("mosaiks", task, [0.51, 0.53])])
    suite = registry / "suites/trial.toml"
    suite.write_text('kind = "wins"\noptions = { margin = 0.01 }\n' + suite.read_text(encoding="utf-8"))
    monkeypatch.syspath_prepend(str(folder))
    catalog.catalog.cache_clear()
    yield
    catalog.catalog.cache_clear()
    sys.modules.pop("neuco_wins", None)


@pytest.mark.usefixtures("package")
def test_terminal_and_csv_show_the_column() -> None:
    lines = run("show", "trial").output.splitlines()
    assert re.fullmatch(r"Rank +Method +Wins +Medal +olinda_elevation_mean +olinda_elevation_std", lines[1])
    assert re.match(r" *1 +pca \(overlap\) +2 \(2–2\) +gold +0\.6", lines[3])
    assert re.match(r" *2 +mosaiks \(overlap\) +0 \(0–\d\) +– +0\.5", lines[4])
    assert re.match(r" *– +averaging \(baseline\) +– +– +0\.4", lines[5])
    assert "Not ranked: averaging, random: baselines do not compete" in lines
    assert "Ranking: number of tasks won, within a margin of 0.01." in lines
    rows = list(csv.DictReader(io.StringIO(run("show", "trial", "--format", "csv").output)))
    assert [(row["method"], row["wins"], row["wins_low"], row["wins_high"]) for row in rows[:1]] == [
        ("pca", "2", "2", "2")
    ]
    assert rows[-1]["reason"] == "baselines do not compete"
    assert re.search(r"trial +wins +suite +2 +not built", run("list").output)


@pytest.mark.usefixtures("package")
def test_options_are_the_kinds_own() -> None:
    assert "within a margin of 0.9." in run("show", "trial", "--margin", "0.9").output
    with pytest.raises(UsageError, match="board kind 'wins' has no option 'weights'; expected margin"):
        run("show", "trial", "--weights", "equal")
    with pytest.raises(UsageError, match="bad margin; expected float, got 'wide'"):
        run("show", "trial", "--margin=wide")
    assert "options.margin" in neuco_here("show", "wins").out
    with pytest.raises(UsageError, match="expected one of score, std"):
        run("show", "trial", "--values", "q")


@pytest.mark.usefixtures("package")
def test_files_changes_and_figures(registry: Path, tmp_path: Path) -> None:
    assert "first version, 2 methods ranked" in run("build").output
    run("check")
    for task in TASKS:
        write_records(registry, [real_record("mosaiks", task, [0.95, 0.96])])
    lines = run("build").output
    assert "mosaiks has new scores" in lines
    assert re.search(r"Wins 0 \(0–\d\) → 2 \(2–2\)", lines)
    assert "pca moves from rank 1 to 2" in lines
    run("plot", "trial", "--kind", "differences", "--out", tmp_path / "differences.svg")
    assert json.loads(board_path(registry, "trial").read_text(encoding="utf-8"))["columns"][0]["key"] == "wins"


@pytest.mark.usefixtures("package")
def test_a_comment_on_a_pull_request_shows_the_column(registry: Path) -> None:
    records = read_all(registry)
    report = SimpleNamespace(plugins=[SimpleNamespace(methods=["pca"])])
    (part,) = _ranks(report, records, records, registry)  # type: ignore[arg-type]
    head, _, line = part.splitlines()[-3:]
    assert head == "| suite <code>trial</code> | rank | <code>Wins</code> | <code>Medal</code> |"
    assert line.startswith("| <code>pca</code> | <code>1</code> | <code>2 ")


@pytest.mark.usefixtures("package")
def test_the_page_shows_and_sorts_the_column(browser: object, registry: Path, tmp_path: Path) -> None:
    run("build")
    run("site", "trial", "--out", tmp_path / "site")
    text = (tmp_path / "site/boards/trial/index.html").read_text(encoding="utf-8")
    assert re.search(
        r'<th scope="col" data-key="wins"[^>]*><button[^>]*title="Tasks on which the method is best">Wins<', text
    )
    assert '<span class="figure">2</span>' in text
    assert '<small class="ends">2–2</small>' in text
    assert "<dt>Wins</dt><dd>2 (2–2)</dd>" in (tmp_path / "site/boards/trial/method/pca.html").read_text("utf-8")
    for reader in reading(browser, tmp_path / "site"):
        assert isinstance(reader, Reader)
        page = reader.open("boards/trial/index.html")
        page.locator("th[data-key='medal'] button").click()
        assert page.locator("th[data-key='medal']").get_attribute("aria-sort") == "descending"
        page.locator("th[data-key='wins'] button").click()
        assert page.locator("th[data-key='wins']").get_attribute("aria-sort") == "descending"
        page.click("#tabs a[href='#tasks']")
        assert page.locator("#parallel path.profile").count() == 2
        assert page.locator("#scatter").count() == 0
        page.click("#tabs a[href='#ranking']")
        page.select_option("#show", "std")
        assert page.evaluate("neuco.state.show") == "std"


@pytest.mark.parametrize(
    ("rank", "words"),
    [
        (lambda cells: 5, "gave a int, not a Ranked"),
        (lambda cells: 1 / 0, "ZeroDivisionError"),
        (lambda cells: Ranked(columns=(Column("a", "A"),) * 2, rows=(), rule=""), "column 'a' is there twice"),
        (lambda cells: Ranked(columns=(Column("Not an id", "A"),), rows=(), rule=""), "matching regex"),
        (lambda cells: Ranked(columns=(), rows=(cells.methods[0].row("1", {}),), rule=""), r"\$.rows\[0\].rank"),
        (lambda cells: Ranked(columns=(), rows=(cells.methods[0].row(1, {}, values={"x": 1}),), rule=""), "no column"),
    ],
)
def test_a_kind_that_gives_no_board_is_named(monkeypatch: pytest.MonkeyPatch, rank: object, words: str) -> None:
    kind = BoardKind(id="bad", rank=rank)  # type: ignore[arg-type]
    monkeypatch.setattr("neuco_core.boards.build.load_board", lambda name: kind)
    with pytest.raises(PluginError, match=f"board kind 'bad' failed: .*{words}"):
        build_board(make_records({"alpha": {"first": 0.5}}), make_suite("first", kind="bad"))
