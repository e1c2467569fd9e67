"""Handwritten digits that come with scikit-learn: proof that nothing here is only for Earth observation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuco_core import Baseline, Dataset, Remote, Task, hookimpl

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeSource

LICENSE = "CC-BY-4.0"
CITATION = "Alpaydin, E. and Kaynak, C. (1998): Optical Recognition of Handwritten Digits, doi:10.24432/C50P49"
TAGS = ("handwriting", "embedded", "real")


def open_cubes() -> CubeSource:
    from neuco_tasks.digits.cubes import DigitCubes

    return DigitCubes()


@hookimpl
def neuco_datasets() -> Iterator[Dataset]:
    yield Dataset(
        id="digits",
        title="Handwritten digits, 8 × 8",
        description="1,797 grey images of 8 × 8 pixels, the test part of the UCI digits, from scikit-learn",
        bands=("grey/0",),
        seasons=("scene",),
        cubes=open_cubes,
        protocol="ridge",
        license=LICENSE,
        citation=CITATION,
        tags=TAGS,
    )


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="digits_class",
        title="Digits: which digit is it",
        description="The digit from 0 to 9 that a person wrote",
        dataset="digits",
        kind="classification",
        metric="f1",
        source=Remote(
            "pkg://neuco_tasks.digits/labels.csv",
            sha256="e3c77f9d78cd8f58fbac9ac171d9bdbe89f5a798f3115aaf2953948c286640f8",
            size=23370,
        ),
        baseline=Baseline(
            method="averaging", score=0.941, tolerance=0.01, protocol="ridge", source="benchmarks/baselines.py"
        ),
        license=LICENSE,
        citation=CITATION,
        tags=TAGS,
    )
