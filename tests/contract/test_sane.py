"""Wrong wrappers are named, each by what it leaves: in the embeddings, or in what the network is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.contract.contract import Finding, run_check
from neuco_core.contract.probing import probe
from neuco_core.contract.sanity import (
    LIMITS,
    NEIGHBOURS,
    NETWORK_LIMITS,
    agreement,
    effective_rank,
    intrinsic_dimension,
    measured,
    responses,
    unusual,
)
from neuco_core.contract.subjects import MethodSubject
from neuco_core.cubes.cubes import CubeBatch
from neuco_core.plugins.catalog import catalog
from neuco_core.specs import Check, Method
from neuco_core.testing import LANDSAT_BANDS, TinyCubes
from tests.contract.helpers import METHOD_FILE, check, edit

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(0)
CUBES = TinyCubes(count=40, bands=LANDSAT_BANDS, seasons=("spring", "fall"), size=16)
PLAIN = {"bands": " ".join(LANDSAT_BANDS), "scale": 1.0, "mean": "60", "std": "20", "pooling": "mean"}


def plane(count: int, dimensions: int) -> np.ndarray:
    return RANDOM.standard_normal((200, dimensions)) @ RANDOM.standard_normal((dimensions, count))


@pytest.mark.parametrize("dimensions", [1, 2, 8])
def test_rank_and_dimension_are_those_of_a_plane(dimensions: int) -> None:
    rows = plane(50, dimensions)
    assert 0.6 * dimensions <= effective_rank(rows) <= dimensions + 0.01
    assert 0.6 * dimensions <= intrinsic_dimension(rows) <= 1.4 * dimensions


def test_neighbours_agree_with_themselves_and_not_with_chance() -> None:
    rows = plane(10, 4)
    assert agreement(rows, rows * 3 + 1) > 4
    assert agreement(rows, RANDOM.permutation(rows)) == pytest.approx(1.0, abs=0.15)


SPOILT: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "one direction": (lambda rows: rows[:, :1] * np.arange(1, 31), "effective rank"),
    "hardly differ": (lambda rows: 1e5 + rows, "relative spread"),
    "dead": (lambda rows: rows * (np.arange(30) < 2), "dead dimensions"),
    "repeated": (lambda rows: np.repeat(rows[:, :10], 3, axis=1), "duplicate dimensions"),
    "the same samples": (lambda rows: rows[np.arange(200) // 2], "duplicate samples"),
    "an outlier": (lambda rows: rows * np.where(np.arange(200) == 7, 1e3, 1.0)[:, None], "largest norm"),
    "clipped": (lambda rows: np.sign(rows), "saturated values"),
    "mixed up": (lambda rows: np.random.default_rng(1).permutation(rows), NEIGHBOURS),
}


@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_embeddings_are_named(name: str) -> None:
    rows = plane(30, 30)
    spoil, measure = SPOILT[name]
    assert not list(unusual({**measured(rows, len(rows)), NEIGHBOURS: agreement(rows, rows)}))
    spoilt = spoil(rows)
    sentences = list(unusual({**measured(spoilt, len(rows)), NEIGHBOURS: agreement(spoilt, rows)}))
    assert any(sentence.startswith(measure) for sentence in sentences), sentences
    assert all("Look at" in sentence for sentence in sentences)


def test_every_limit_is_of_a_measure_that_there_is() -> None:
    rows = plane(5, 5)
    found = measured(rows, len(rows)) | responses(rows, dict.fromkeys(("up", "down", "bands", "nodata"), rows))
    assert {limit.measure for limit in LIMITS} == {*found, NEIGHBOURS}


class Small(torch.nn.Module):  # type: ignore[misc]
    """A small transformer: a class token and 16 patches."""

    def __init__(self, trained: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = torch.nn.Conv2d(6, 24, 4, 4)
        self.token = torch.nn.Parameter(torch.randn(1, 1, 24))
        self.block = torch.nn.TransformerEncoderLayer(24, 2, 48, dropout=0.1, batch_first=True)
        self.norm = torch.nn.LayerNorm(24)
        if trained:
            for layer in (self.block.norm1, self.block.norm2, self.norm):
                torch.nn.init.normal_(layer.weight, 1.0, 0.1)

    def forward(self, images: Any) -> Any:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.norm(self.block(torch.cat([self.token.expand(len(tokens), -1, -1), tokens], dim=1)))


class Wrapper:
    """A right wrapper; a test replaces one of its parts."""

    mean, std, order, token, training, trained = 60.0, 20.0, slice(None), "mean", False, True

    def fit(self, source: Any) -> None:
        self.model = Small(self.trained).train(self.training)

    def see(self, values: np.ndarray) -> np.ndarray:
        return (values - self.mean) / self.std

    def encode(self, batch: CubeBatch) -> np.ndarray:
        images = torch.from_numpy(self.see(batch.values[:, :, self.order]).astype(np.float32).copy())
        with torch.inference_mode():
            tokens = self.model(images.flatten(0, 1))
        rows = tokens[:, 0] if self.token == "class" else tokens[:, 1:].mean(dim=1)
        return np.asarray(rows.reshape(len(batch.ids), -1, 24).mean(dim=1))


def findings(parts: dict[str, Any], **fields: Any) -> dict[str, Finding]:
    wrapper = type("Wrapped", (Wrapper,), parts)
    facts: dict[str, Any] = {"params": PLAIN, "requires": ("torch",), "pretraining": ("x",), **fields}
    method = Method(id="wrapped", encoder=lambda **_: wrapper(), **facts)
    subject = MethodSubject(method)
    vars(subject)["probes"] = probe(method, CUBES, "tiny")
    checks = catalog().all(Check)
    return {name: run_check(checks[name], subject) for name in ("method-sane", "method-network")}


def test_a_right_wrapper_is_not_warned_about() -> None:
    found = findings({})
    assert {name: item.status for name, item in found.items()} == {"method-sane": "ok", "method-network": "ok"}, found
    assert "pooled by mean" in found["method-network"].detail
    network = probe(Method(id="right", encoder=lambda **_: Wrapper(), requires=("torch",)), CUBES, "tiny").network
    assert network is not None
    assert network.measures.keys() == {limit.measure for limit in NETWORK_LIMITS}


def noise(self: Wrapper, values: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(values.shape)


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "unit": ({"std": 2e5, "mean": 0.0}, "method-network", "Look at the unit"),
    "statistics": ({"mean": 120.0}, "method-network", "declare other statistics of etm/B1"),
    "bands": ({"order": slice(None, None, -1)}, "method-network", "the network gets etm/B7 for etm/B1"),
    "training": ({"training": True}, "method-network", "Look at model.eval()"),
    "token": ({"token": "class"}, "method-network", "declares pooling=mean, and its rows are the class token"),
    "frozen": ({"see": lambda self, values: values * 0}, "method-sane", "every sample has the same row"),
    "ignored": ({"see": noise}, "method-sane", "other images give the same row"),
    "weights": ({"trained": False}, "method-network", "Look at whether the weights are loaded"),
}


@pytest.mark.parametrize("way", WRONG)
def test_a_wrong_wrapper_is_named(way: str) -> None:
    parts, name, words = WRONG[way]
    finding = findings(parts)[name]
    assert finding.status == ("failed" if way == "frozen" else "warning")
    assert words in finding.detail, finding.detail


def test_a_random_network_that_says_so_is_right() -> None:
    assert findings({"trained": False}, pretraining=())["method-network"].status == "ok"


def test_what_is_claimed_of_seasons_is_held_against_it() -> None:
    assert findings({}, params={**PLAIN, "seasons": "post"})["method-sane"].status == "ok"
    concat = findings({}, params={**PLAIN, "seasons": "concat"})["method-sane"]
    assert concat.status == "warning"
    assert "it claims to keep seasons apart" in concat.detail


def test_an_encoder_that_cannot_take_no_data_is_said_to_be(tmp_path: Path) -> None:
    def see(self: Wrapper, values: np.ndarray) -> np.ndarray:
        return values / values.mean(axis=(1, 3, 4), keepdims=True)

    with np.errstate(all="ignore"):
        assert "'zero' cannot be encoded" in findings({"see": see})["method-sane"].detail


def test_neuco_check_says_what_it_means_and_where_to_look(good: Path) -> None:
    assert check(good, "plain", "--only", "method-sane")["method-sane"]["status"] == "ok"
    edit(METHOD_FILE, ".reshape(len(batch.ids), -1)", ".reshape(len(batch.ids), -1) * 0")(good)
    finding = check(good, "plain", "--only", "method-sane")["method-sane"]
    assert (finding["status"], "every sample has the same row" in finding["detail"]) == ("failed", True)
    assert finding["cure"]


def test_another_method_under_a_new_name_is_noticed() -> None:
    subject = MethodSubject(replace(catalog().all(Method)["averaging"], id="large"))
    finding = run_check(catalog().all(Check)["method-distinct"], subject)
    assert finding.status == "skipped", "nothing is known of it yet"
    vars(subject)["outcome"] = {"olinda": catalog().all(Method)["averaging"].embeddings("olinda")}
    finding = run_check(catalog().all(Check)["method-distinct"], subject)
    assert finding.status == "warning"
    assert "the same numbers as averaging" in finding.detail
