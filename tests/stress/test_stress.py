"""Images get worse in the same way every time, and what a method keeps of its scores stands on its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from neuco_core.site.item_pages import method_page, strips
from neuco_core.site.page_data import gather
from neuco_core.testing import LANDSAT_BANDS, TinyCubes
from neuco_extensions.stress.changes import KINDS, LEVELS, Damage
from neuco_extensions.stress.curves import Stress, read_stress
from tests import command
from tests.registry import copy_registry

CUBES = TinyCubes(bands=(*LANDSAT_BANDS, "s1/VV"), seasons=("scene",), size=16)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_grows_by_level_and_is_the_same_twice(kind: str) -> None:
    batch = CUBES.read(CUBES.ids())
    damage, clean = Damage(batch), batch.values
    sizes = []
    for level in LEVELS:
        worse = damage(batch, kind, level)
        assert np.array_equal(worse, damage(batch, kind, level))
        assert worse.shape == clean.shape
        sizes.append(float(np.abs(worse - clean).mean()))
    assert sizes[0] > 0
    if kind == "shift":  # of noise, one step is as far as another
        assert np.array_equal(worse[..., :-5], clean[..., 5:])
    else:
        assert sizes[-1] > sizes[0]
    if kind in ("haze", "cloud"):
        assert np.array_equal(worse[:, :, -1], clean[:, :, -1]), "radar sees through it"


def test_the_same_numbers_twice_and_on_the_page_but_in_no_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = copy_registry(tmp_path / "registry")
    before = [page.board for page in gather(registry, ["olinda"])]
    monkeypatch.setenv("NEUCO_REGISTRY", str(registry))
    line = ("stress", "averaging", "--suite", "olinda", "--samples", "60", "--keep", "--json")
    first, again = (json.loads(command.neuco_here(*line, env={}).out) for _ in range(2))
    assert first == again
    assert 0.1 < first["number"] < 1
    stored = read_stress(registry, "olinda", "averaging")
    assert isinstance(stored, Stress)
    assert stored.number == first["number"]
    assert stored.curves.keys() == KINDS.keys()
    (page,) = gather(registry, ["olinda"])
    assert [page.board] == before
    (row,) = [row for row in page.board.rows if row.method == "averaging"]
    html = method_page(page, row, strips(page))
    assert f"<b>{first['number']:.0%}</b> on average over six kinds of damage" in html
    assert all(f"<title>what is kept with {kind}</title>" in html for kind in KINDS)
    other = next(row for row in page.board.rows if row.method == "pca")
    assert "kinds of damage" not in method_page(page, other, strips(page))


def test_what_cannot_be_stressed_is_said() -> None:
    done = command.neuco_here("stress", "position", "--suite", "olinda", env={})
    assert done.code == 2
    assert "encodes no images" in done.err
