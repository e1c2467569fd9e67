"""Numbers that know nothing of the samples: the floor under every score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method


def make_encoder(dim: int = 1024, seed: int = 42) -> Any:
    from neuco_methods.random.encoder import RandomEncoder

    return RandomEncoder(dim, seed)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    yield Method(
        id="random",
        title="Random numbers",
        description="1,024 numbers drawn from the sample's id alone; what scores above this has seen the data.",
        license="Apache-2.0",
        tags=("control", "no-training"),
        encoder=make_encoder,
        params={"dim": 1024, "seed": 42},
        dim=1024,
        baseline=True,
        uses_ids=True,
        pretraining=(),
        n_parameters=0,
        preprocessing="none: it takes no pixels",
    )
