"""Waves: the smallest complete neuco plugin. Copy it and put your own data in its place."""

from collections.abc import Iterator

from neuco_core import Baseline, Dataset, Method, Remote, Task, hookimpl


def _cubes() -> object:
    from neuco_task_example.waves import Waves  # numpy is imported only when the data is asked for

    return Waves()


def _encoder() -> object:
    from neuco_task_example.waves import Spectrum

    return Spectrum()


@hookimpl
def neuco_datasets() -> Iterator[Dataset]:
    yield Dataset(
        id="example",
        title="Waves",
        description="240 synthetic images of 16 × 16 pixels, each a plane wave with noise",
        bands=("grey/0",),
        seasons=("scene",),
        cubes=_cubes,
        synthetic=True,
        protocol="ridge",
        license="Apache-2.0",
        tags=("example",),
    )


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield Task(
        id="example_frequency",
        title="Frequency of the wave",
        dataset="example",
        kind="regression",
        metric="r2",
        unit="periods per image",
        source=Remote(
            "pkg://neuco_task_example/frequency.csv",
            sha256="312906d4d9949b597d4b70d51728030586a7d80d4ac9c85e7298445380702922",
            size=3832,
        ),
        baseline=Baseline(method="example_spectrum", score=0.768, tolerance=0.05, protocol="ridge"),
        license="Apache-2.0",
        tags=("example",),
    )


@hookimpl
def neuco_methods() -> Iterator[Method]:
    yield Method(
        id="example_spectrum",
        title="Power spectrum",
        description="The logarithm of the power spectrum of each image",
        encoder=_encoder,
        bands=("grey/0",),
        dim=144,
        license="Apache-2.0",
        tags=("example",),
    )
