"""Fewer dimensions, fewer bits, the picture of it, and the curves that are kept beside a board."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from sklearn.decomposition import PCA

from neuco_core.boards.cells import from_records
from neuco_core.boards.store import current
from neuco_core.env import how_to_install
from neuco_core.errors import DataError
from neuco_core.figures import save
from neuco_core.plugins.catalog import load_suite
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import from_suite
from neuco_extensions.rate.curves import ablation_figure, of_board
from neuco_extensions.rate.stored import Ablation, AblationPoint, read_ablations, write_ablation
from neuco_extensions.rate.variants import Reducer, Variant, VariantScore, plan
from tests.command import neuco_here as neuco
from tests.site.made_pages import IMAGE, made_source

FAST = ("--k", 2, "--epochs", 2)
TASK = "olinda_elevation_mean"
OLINDA = ("--method", "averaging", "--suite", "olinda")


@pytest.fixture
def block() -> np.ndarray:
    random = np.random.default_rng(3)
    return (random.standard_normal((300, 20)) @ random.standard_normal((20, 20)) + 5).astype(np.float32)


def test_truncation_keeps_the_first_and_principal_components_are_those_of_scikit_learn(block: np.ndarray) -> None:
    assert np.array_equal(Reducer(block)("truncate", 7), block[:, :7])
    ours = Reducer(block)("pca", 5)
    theirs = PCA(5, svd_solver="full").fit_transform(block.astype(np.float64))
    assert np.abs(ours) == pytest.approx(np.abs(theirs), abs=1e-3)


def test_random_projections_keep_distances_on_average(block: np.ndarray) -> None:
    squares = [(Reducer(block, seed)("random", 10) ** 2).sum() for seed in range(60)]
    assert np.mean(squares) == pytest.approx((block.astype(np.float64) ** 2).sum(), rel=0.2)
    assert np.array_equal(Reducer(block, 1)("random", 4), Reducer(block, 1)("random", 4))
    assert not np.array_equal(Reducer(block, 1)("random", 4), Reducer(block, 2)("random", 4))


def test_two_axes_or_a_grid() -> None:
    two: dict[str, Any] = {"dims": (16, 64), "reductions": ("truncate", "pca"), "rates": ("float32", "int8")}
    axes, _ = plan(64, 500, **two)
    assert axes == [
        Variant("none", 64, "float32"),
        Variant("none", 64, "int8"),
        Variant("truncate", 16, "float32"),
        Variant("pca", 16, "float32"),
        Variant("pca", 64, "float32"),
    ]
    grid, _ = plan(64, 500, **two, grid=True)
    assert len(grid) == 2 + 2 * 3


def test_what_does_not_fit_is_told() -> None:
    variants, left_out = plan(64, 20, dims=(32, 128), reductions=("pca",), rates=("float32",))
    assert variants == [Variant("none", 64, "float32")]
    assert left_out == ["128 dimensions: the embedding has 64", "pca to 32 dimensions: there are 20 samples"]


def test_the_command(case: Path, parity_tasks: Path, tmp_path: Path) -> None:
    args = ("rate", "ablate", "--embeddings", case / "embeddings.csv", "--dataset", "parity", *FAST)
    args = (*args, "--dims", "4", "--reduce", "pca", "--rates", "binary,entropy=0.5")
    ran = neuco(*args, "--plot", tmp_path / "a.png", "--json")
    assert ran.code == 0, ran.err
    points = {(p["reduction"], p["dim"], p["rate"]): p for p in ran.json["points"]}
    assert list(points) == [("none", 48, "float32"), ("none", 48, "binary"), ("none", 48, "entropy=0.5"),
                            ("pca", 4, "float32")]  # fmt: skip
    whole = points["none", 48, "float32"]
    assert whole["bits_per_sample"] == 48 * 32
    assert points["pca", 4, "float32"]["bits_per_sample"] == 4 * 32
    assert set(whole["tasks"]) == {"parity_alpha", "parity_beta", "parity_delta", "parity_gamma"}
    assert "parity_unpinned: the labels are not downloaded yet" in ran.json["left_out"][0]
    alone = neuco("score", "--embeddings", case / "embeddings.csv", "--task", "parity_delta", *FAST, "--json")
    assert whole["tasks"]["parity_delta"]["q"] == alone.json["cells"][0]["record"]["q"]
    assert neuco(*args, "--json", "--threads", 1).out == ran.out


@pytest.mark.parametrize(("end", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_picture_is_the_same_twice(tmp_path: Path, end: str, begins: bytes) -> None:
    score: Any = SimpleNamespace(q=12.0)
    points = [
        VariantScore(variant, bits, 0.0, {"a": score, "b": score})
        for variant, bits in (
            (Variant("none", 48, "float32"), 1536.0),
            (Variant("none", 48, "entropy=0.5"), 100.0),
            (Variant("pca", 4, "float32"), 128.0),
        )
    ]
    first, second = (tmp_path / f"{name}.{end}" for name in "ab")
    for path in (first, second):
        save(ablation_figure(points, "trial"), path)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(begins)


def test_fewer_labels() -> None:
    args = ("rate", "ablate", "--method", "band_statistics", "--task", "olinda_elevation_mean", "--k", 5)
    ran = neuco(*args, "--label-shares", "1%,10%,100%", "--json")
    assert ran.code == 0, ran.err
    points = {point["label_share"]: point["tasks"]["olinda_elevation_mean"]["mean"] for point in ran.json["points"]}
    assert list(points) == [1.0, 0.1, 0.01]
    assert points[0.01] < points[0.1] < points[1.0]
    whole = neuco("score", "--method", "band_statistics", "--task", "olinda_elevation_mean", "--k", 5, "--json")
    assert points[1.0] == whole.json["cells"][0]["record"]["mean"]
    table = neuco(*args, "--label-shares", "0.1")
    assert [line.split()[4] for line in table.out.splitlines()[2:4]] == ["100", "10"]
    few = neuco(*args, "--label-shares", "0.1%")
    assert few.code == 1
    assert "olinda_elevation_mean: too few labels to learn from; expected 10, got 2 of 1664" in few.out


def test_default_options_work_without_the_extra_and_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "constriction", None)
    ran = neuco("rate", "ablate", "--method", "band_statistics", "--task", TASK, *FAST)
    assert ran.code == 0, ran.text
    (line,) = [line for line in ran.out.splitlines() if "entropy" in line]
    assert line == f"left out entropy: it needs the package constriction. Run `{how_to_install('rates')}`"
    asked = neuco("rate", "ablate", "--method", "band_statistics", "--task", TASK, "--rates", "entropy=1", *FAST)
    assert (asked.code, "needs the package constriction" in asked.text) == (6, True)


def test_python_gives_what_the_command_prints() -> None:
    from neuco_extensions.rate import ablate

    with pytest.warns(UserWarning, match=r"left out (64|256|1024) dimensions: the embedding has 54"):
        points = ablate("band_statistics", TASK, k=2, epochs=2, progress=False)
    ran = neuco("rate", "ablate", "--method", "band_statistics", "--task", TASK, *FAST, "--json")
    assert [point.to_json() for point in points] == ran.json["points"]
    few = ablate("band_statistics", TASK, k=5, shares=(0.1,), progress=False)
    assert [point.variant.share for point in few] == [1.0, 0.1]


def test_a_variant_that_cannot_be_coded_is_told(parity_tasks: Path, case: Path, tmp_path: Path) -> None:
    lines = (case / "embeddings.csv").read_text().splitlines()
    big = [",".join([cells[0], *(f"{value}e6" for value in cells[1:])]) for cells in (x.split(",") for x in lines[1:])]
    (tmp_path / "big.csv").write_text("\n".join([lines[0], *big]) + "\n")
    args = ("--task", "parity_beta", "--dims", "8", "--reduce", "pca", "--rates", "float16,int8", *FAST)
    ran = neuco("rate", "ablate", "--embeddings", tmp_path / "big.csv", *args)
    assert ran.code == 1
    assert "failed none 48 float16: values too large for float16" in ran.out
    rows = [line.split()[:3] for line in ran.out.splitlines()[2:5]]
    assert rows == [["none", "48", "float32"], ["none", "48", "int8"], ["pca", "8", "float32"]]


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        ((), 2, "--method"),
        (("--method", "pca", "--dims", "a,b"), 2, "whole numbers"),
        (("--method", "pca", "--rates", "int4"), 2, "no such rate"),
        ((*OLINDA, "--dims", "0"), 2, "at least 1"),
        ((*OLINDA, "--reduce", "umap"), 2, "umap"),
        ((*OLINDA, "--label-shares", "150%"), 2, "above 0 and at most 1"),
        (("--method", "averaging", "--label-shares", "half"), 2, "not a list of shares"),
        (("--method", "averaging", "--label-shares", "10%", "--plot", "x.png"), 2, "the plot is of bits"),
        (("--method", "pca", "--plot", "a.gif"), 2, "figure format"),
        (("--method", "pca", "--task", "biomass_mean"), 1, "not downloaded"),
        (("--method", "pca", "--kind", "classification"), 2, "several datasets"),
        (("--method", "averaging", "--dataset", "olinda", "--keep"), 2, "--keep is for a board"),
        ((*OLINDA, "--grid", "--keep"), 2, "--keep is for a board"),
        ((*OLINDA, "--task", "olinda_sea_level", "--keep"), 2, "all 3 tasks under ridge"),
        ((*OLINDA, "--keep"), 2, "got 3 tasks under ridge+epochs=1,k=1"),
    ],
)
def test_wrong_use(args: tuple[str, ...], code: int, word: str) -> None:
    ran = neuco("rate", "ablate", *args, "--k", 1, "--epochs", 1)
    assert (ran.code, word in ran.err) == (code, True), ran.err
    assert "Traceback" not in ran.err


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
