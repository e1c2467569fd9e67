"""The plugin manual is true: the example of every hook is installed and used."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import neuco_core
from neuco_core import hookspecs, load_dataset, load_method, load_protocol, load_task, score
from neuco_core.errors import UnpinnedError
from neuco_core.plugins import catalog
from neuco_core.plugins.discovery import PLURAL
from neuco_core.specs import resolve
from neuco_core.tables.embeddings import make_embeddings
from neuco_core.tables.labels import Labels
from neuco_core.testing import TinyCubes, check_encoder
from tests.command import neuco_here
from tests.plugins.helpers import Tree
from tests.registry import ROOT

HOOKS = {name: item for name, item in vars(hookspecs).items() if name.startswith("neuco_")}
HEAD = f"import click\nfrom neuco_core import {', '.join(neuco_core.__all__)}\n\n"


def example(hook: str) -> str:
    """The code in a hook's docstring, which follows its first paragraph."""
    text = inspect.getdoc(HOOKS[hook]) or ""
    return text[text.index("@hookimpl") :]


def scored(metric: str = "r2", **rules: object) -> neuco_core.Score:
    """A score of 60 samples whose label is their first value."""
    values = np.random.default_rng(0).standard_normal((60, 3)).astype("float32")
    ids = tuple(map(str, range(60)))
    labels = Labels("soil_ph", "regression", ids, values[:, 0].astype(float), sha256="0" * 64)
    return score(make_embeddings(ids, values), labels, load_protocol("ridge").with_(k=2, **rules), metric=metric)


def use_datasets() -> None:
    assert load_dataset("soil").license == "CC-BY-4.0"


def use_tasks() -> None:
    with pytest.raises(UnpinnedError, match="neuco data pin soil_ph"):
        load_task("soil_ph").labels()


def use_methods() -> None:
    encoder, cubes = load_method("soil_mean").encoder, TinyCubes()
    assert encoder is not None
    assert check_encoder(encoder, cubes).shape == (len(cubes.ids()), len(cubes.bands))


def use_metrics() -> None:
    assert catalog.load_metric("soil_bias").function(np.zeros(2), np.array([-3.0, 4.0])) == pytest.approx(0.5)
    biased = scored(metric="soil_bias")
    assert (biased.metric, 0 < biased.mean < 0.1, biased.q < 0) == ("soil_bias", True, True)


def use_probes() -> None:
    assert 0.3 < scored(probe="soil_knn").mean < 0.99  # nearest neighbours learn it, and not as well as a line


def use_splitters() -> None:
    split = scored(splitter="soil_halves")
    assert (len(split.per_split), split.samples["train"], split.samples["test"]) == (1, 30, 30)


def use_engines() -> None:
    from neuco_core.runs.engine import StepLimits, open_engine
    from neuco_core.runs.messages import Embed, Group, ScoreCell, Scored

    step = ScoreCell(Embed("random", "digits"), "digits_class", "ridge+k=2")
    [(done, result)] = open_engine("soil_serial", 4).run([Group((step,), step.embed)], StepLimits())
    assert done is step
    assert isinstance(result, Scored)


def use_boards() -> None:
    from neuco_core.boards.build import build_board
    from neuco_core.specs import Suite
    from tests.boards.helpers import make_records

    records = make_records({"a": {"ph": 0.2}, "b": {"ph": 0.6}, "c": {"ph": 0.2}})
    board = build_board(records, Suite(id="soil", kind="soil_mean", tasks={"ph": 1}))
    assert [(row.rank, row.method) for row in board.rows] == [(1, "b"), (2, "a"), (2, "c")]


def use_commands() -> None:
    assert neuco_here("soil").out == "soil!\n"


def use_checks() -> None:
    from neuco_core.contract.contract import run_checks
    from neuco_core.contract.subjects import TaskSubject

    with_unit, without = (replace(load_task("digits_class"), unit=unit) for unit in ("pH", ""))
    findings = [run_checks("task", TaskSubject(task), ["soil_unit"]) for task in (with_unit, without)]
    assert [(finding.status, finding.detail) for (finding,) in findings] == [("ok", "pH"), ("warning", "no unit")]


def use_panels() -> None:
    from neuco_core.site.render import panels
    from tests.site.made_pages import made_source

    soil = [panel for panel in panels(made_source(4, 2, replicates=10), "board") if panel.id == "soil"]
    assert [(panel.title, panel.html) for panel in soil] == [("Soil", "<p>2 tasks</p>")]


def use_published() -> None:
    from neuco_core.boards.published import list_published

    text = (ROOT / "registry" / "published" / "neuco-paper-table-4.json").read_text()
    with TemporaryDirectory() as folder:
        file = Path(folder, "soil", "soil_paper.json")
        file.parent.mkdir()
        file.write_text(json.dumps(json.loads(text) | {"id": "soil_paper"}))
        assert "soil_paper" in [board.id for board in list_published(Path(folder))]


def use_cells() -> None:
    from neuco_core.boards.build import build_board
    from neuco_core.boards.facts import extra_cells
    from neuco_core.specs import Suite
    from tests.boards.helpers import make_records

    records = make_records({"a": {"ph": 0.2}, "b": {"ph": 0.6, "sand": 0.4}})
    extra = extra_cells(build_board(records, Suite(id="soil", tasks={"ph": 1, "sand": 1})))
    assert extra is not None
    assert {key: cell.values for key, cell in extra.cells.items()} == {("a", "sand"): {"score": 0.5}}


def use_columns() -> None:
    from neuco_core.boards.build import build_board
    from neuco_core.boards.facts import with_columns
    from neuco_core.specs import Suite
    from tests.boards.helpers import make_records

    records = make_records({"a": {"ph": 0.2}, "b": {"ph": 0.6}})
    plain = build_board(records, Suite(id="soil", tasks={"ph": 1}))
    board = with_columns(plain, {})
    assert [(row.rank, row.values["soil_splits"]) for row in board.rows] == [(1, 8), (2, 8)]
    assert board.columns == (*plain.columns, board.columns[-1])


def use_coders() -> None:
    coder = resolve(catalog.catalog().load(neuco_core.Coder, "soil_tenths").factory)("")
    codes = coder.encode(np.float32([[0.12, -3.0]]))
    assert (codes.nbytes, coder.decode(codes).tolist()) == (2, [[0.1, -3.0]])


USES: dict[str, Callable[[], None]] = {
    f"neuco_{name.removeprefix('use_')}": item for name, item in list(vars().items()) if name.startswith("use_")
}


@pytest.mark.parametrize("hook", HOOKS)
def test_every_example_is_installed_and_used(hook: str, tree: Tree) -> None:
    assert hook in USES, f"add a rule for {hook}: a function use_{hook.removeprefix('neuco_')} that uses its example"
    module = f"soil_example_{hook}"
    tree.install(
        "neuco-soil", {f"neuco.{hook.removeprefix('neuco_')}": {"soil": module}}, {module: HEAD + example(hook)}
    )
    catalog.catalog.cache_clear()
    USES[hook]()
    assert not [problem for problem in catalog.catalog().problems() if problem.name == "soil"]


def test_there_is_a_hook_for_every_noun() -> None:
    assert set(HOOKS) == {f"neuco_{plural}" for plural in PLURAL.values()}


def test_the_manual_is_short() -> None:
    assert len(Path(hookspecs.__file__).read_text().splitlines()) < 240, "fifteen hooks, each with an example"
