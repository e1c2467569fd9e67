"""Nine numbers for each band and season: what a histogram would tell, and nothing of where in the image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method


def make_encoder(seasons: str = "concat") -> Any:
    from neuco_methods.band_statistics.encoder import BandStatisticsEncoder

    return BandStatisticsEncoder(seasons)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    yield Method(
        id="band_statistics",
        title="Band statistics",
        description="Mean, standard deviation and seven quantiles of each band in each season.",
        license="Apache-2.0",
        tags=("baseline", "no-training"),
        encoder=make_encoder,
        params={"seasons": "concat"},
        dim=972,
        pretraining=(),
        n_parameters=0,
    )
