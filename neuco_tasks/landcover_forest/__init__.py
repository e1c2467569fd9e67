"""Share of forest in a place, from CORINE."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "landcover_forest",
        title="Share of forest",
        description="Fraction of forest in the image; labels from CORINE land cover",
        metric="r2",
        unit="fraction",
        files=("landcover_forest__regr.csv",),
        tags=("land-cover", "vegetation"),
        r2=0.216,
    )
