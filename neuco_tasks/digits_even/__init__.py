"""Is a handwritten digit even? The template for labels that others publish: a remote file, a mirror and a loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from neuco_core import Baseline, Remote, Task, hookimpl

# scikit-learn's file at a fixed release, and the same bytes in the scikit-learn that is installed: the sha256 holds for
# whoever delivers them.
LABELS = Remote(
    "https://raw.githubusercontent.com/scikit-learn/scikit-learn/1.9.1/sklearn/datasets/data/digits.csv.gz",
    sha256="09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22",
    size=57523,
    mirrors=("pkg://sklearn/datasets/data/digits.csv.gz",),
)


def read_digits(path: Path) -> dict[str, list[object]]:
    """The file is a packed CSV without a header: 64 grey values and the digit, a row for each image of ``digits``."""
    import csv
    import gzip

    with gzip.open(path, "rt", encoding="ascii", newline="") as file:
        digits = [int(float(row[-1])) for row in csv.reader(file)]
    return {
        "id": [f"digit-{place:04d}" for place in range(len(digits))],
        "label": [1 - digit % 2 for digit in digits],
    }


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="digits_even",
        title="Digits: is it even",
        description="1 if the digit that a person wrote is even, read from scikit-learn's own file",
        dataset="digits",
        kind="classification",
        metric="f1",
        source=LABELS,
        loader=read_digits,
        baseline=Baseline(
            method="averaging", score=0.911, tolerance=0.01, protocol="ridge", source="benchmarks/baselines.py"
        ),
        license="CC-BY-4.0",
        citation="Alpaydin, E. and Kaynak, C. (1998): Optical Recognition of Handwritten Digits, doi:10.24432/C50P49",
        tags=("handwriting", "embedded", "real"),
    )
