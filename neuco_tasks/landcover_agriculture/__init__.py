"""Share of agriculture in a place, from CORINE."""

from collections.abc import Iterator

from neuco_core import Task, hookimpl
from neuco_tasks.ssl4eo_s12_downstream.common import ssl4eo_task


@hookimpl
def neuco_tasks() -> Iterator[Task]:
    yield ssl4eo_task(
        "landcover_agriculture",
        title="Share of agriculture",
        description="Fraction of agricultural land in the image; labels from CORINE land cover",
        metric="r2",
        unit="fraction",
        files=("landcover_agriculture__regr.csv",),
        tags=("land-cover", "agriculture"),
        r2=0.126,
    )
