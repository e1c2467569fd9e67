"""Where a sample lies, and nothing of what is in it: how far a score goes without looking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method, Remote

if TYPE_CHECKING:
    from neuco_methods.position.waves import Waves

OLINDA = Remote(
    "pkg://neuco_methods.position/olinda.npz",
    sha256="bd8028481fce6893e89e13f0c1e797b5c7e70513dd977cebbe052213491ec476",
    size=232544,
)


def make_waves(side: int) -> Waves:
    from neuco_methods.position.waves import Waves

    return Waves(side)


@hookimpl
def neuco_methods() -> Iterator[Method]:
    yield Method(
        id="position",
        title="Position in the scene",
        description="63 waves of a sample's position; what scores no higher may know the place, not what is there.",
        license="Apache-2.0",
        tags=("control", "no-training"),
        files={"olinda": OLINDA},
        encoder=make_waves,
        params={"side": 8},
        uses_positions=True,
        dim=63,
        baseline=True,
        pretraining=(),
        n_parameters=0,
        preprocessing="none: it takes no pixels",
    )
