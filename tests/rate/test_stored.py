"""Curves beside a board: kept by a command, shown only while they are about the scores of the board."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from neuco_core.boards.cells import from_records
from neuco_core.boards.store import current
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_suite
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import from_suite
from neuco_extensions.rate.curves import of_board
from neuco_extensions.rate.stored import Ablation, AblationPoint, read_ablations, write_ablation
from tests.command import neuco_here as neuco
from tests.site.made_pages import IMAGE, made_source


def curves(source: object, method: str) -> Ablation:
    cells = source.cells  # type: ignore[attr-defined]
    q = {task.id: cells.cell(method, task.id).q for task in cells.tasks}
    small = {task: value / 2 for task, value in q.items()}
    points = (
        AblationPoint("none", 64, "float32", 2048.0, q),
        AblationPoint("none", 64, "binary", 80.0, small),
        AblationPoint("pca", 16, "float32", 512.0, small),
        AblationPoint("pca", 4, "float32", 128.0, small),
    )
    facts = {"suite": "made", "method": method, "version": 1, "protocol": "neuco-2025", "projection_seed": 0}
    return Ablation(schema=1, points=points, **facts)  # type: ignore[arg-type]


def test_what_is_kept_in_the_registry_is_about_its_boards(committed_registry: Path) -> None:
    now = current(committed_registry)
    for folder in (committed_registry / "ablations").iterdir():
        suite = load_suite(folder.name)
        kept = read_ablations(committed_registry, suite.id)
        assert kept
        source = from_suite(now, suite)
        assert of_board(replace(source, registry=committed_registry)) == kept


def test_the_command_keeps_what_the_board_shows(
    committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, suite = current(committed_registry), load_suite("olinda")
    cells = from_records(now.records, suite, now.why_stale)
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/olinda.toml").write_bytes((committed_registry / "suites/olinda.toml").read_bytes())
    fast = ("--dims", 4, "--reduce", "truncate", "--rates", "binary")
    ran = neuco("rate", "ablate", "--method", "averaging", "--suite", "olinda", *fast, "--keep")
    assert ran.code == 0, ran.err
    ablation = read_ablations(tmp_path, "olinda")["averaging"]
    assert [(p.reduction, p.dim, p.rate) for p in ablation.points] == [
        ("none", ablation.points[0].dim, "float32"),
        ("none", ablation.points[0].dim, "binary"),
        ("truncate", 4, "float32"),
    ]
    assert ablation.holds(cells)
    assert not structs.replace(ablation, version=ablation.version + 1).holds(cells)
    assert not structs.replace(ablation, points=ablation.points[1:]).holds(cells)
    other = structs.replace(ablation.points[0], q={**ablation.points[0].q, "olinda_sea_level": 36.0})
    assert not structs.replace(ablation, points=(other, *ablation.points[1:])).holds(cells)


def test_the_page_draws_them_by_rank_and_escapes_names(tmp_path: Path) -> None:
    source = made_source()
    for name in ("m000", "m003"):
        write_ablation(tmp_path, curves(source, name))
    page = board_page(replace(source, registry=tmp_path))
    assert page.count('class="curves"') == 2
    assert "pca 16, float32: 512 bits, mean Q" in page
    assert IMAGE not in page
    assert 'class="curves"' not in board_page(source)


def test_files_come_back_and_bad_ones_are_named(tmp_path: Path) -> None:
    ablation = curves(made_source(), "m001")
    path = write_ablation(tmp_path, ablation)
    assert read_ablations(tmp_path, "made") == {"m001": ablation}
    path.write_text(json.dumps({**json.loads(path.read_text()), "more": 1}))
    with pytest.raises(DataError, match="not an ablation"):
        read_ablations(tmp_path, "made")
