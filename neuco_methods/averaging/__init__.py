"""The baseline of the NeuCo-Bench paper: shrink each image to 8 × 8 and average bands that say much the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method


def make_encoder(bands: str = "paper", size: int = 8) -> Any:
    from neuco_methods.averaging.encoder import AveragingEncoder

    return AveragingEncoder(bands, size)


VARIANTS = {
    "averaging": (
        "paper",
        "Averaging baseline",
        "Bilinear to 8 × 8, four averaged channels, four seasons: 1,024 numbers.",
    ),
    "averaging_notebook": (
        "notebook",
        "Averaging baseline, band indices of the notebook",
        "As averaging, with B09 where the text says B10, and B10 averaged with B11 and B12.",
    ),
}


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, (bands, title, description) in VARIANTS.items():
        yield Method(
            id=name,
            title=title,
            description=description,
            license="Apache-2.0",
            citation="NeuCo-Bench, appendix B.3.1, arXiv:2510.17914",
            tags=("baseline", "no-training"),
            encoder=make_encoder,
            params={"bands": bands, "size": 8},
            dim=1024,
            baseline=True,
            pretraining=(),
            n_parameters=0,
            preprocessing="bilinear to 8 × 8, groups of bands averaged",
        )
