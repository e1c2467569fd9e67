"""The table of the capabilities-encoding paper. It has no licence, so it is fetched from its authors and verified."""

from __future__ import annotations

from neuco_core.fetch.fetch import fetch
from neuco_core.specs import Remote
from neuco_extensions.predict.read import read_paper
from neuco_extensions.predict.table import Table

NAME = "paper"
COMMIT = "52057bd9224fb36f9aed0ce3be8a6e9220a71703"
ADDRESS = "https://raw.githubusercontent.com/pierreadorni/capabilities-encoding"
# File → sha256 and size.
FILES = {
    "data": ("eab0a98739f85202bf2f81a298bef03ebe6a58e2b90351ee1d3be280a58b04c6", 24021),
    "models": ("4213e9b5d9f4b5a199d4a65204985d62e2535ae22d5ea539c0458cb3e360c171", 2816),
    "tasks": ("2d730c4b17c0a2169c2a3aa758673b9bc018c985d883ac01ff8d9ae975674eeb", 2137),
}
REMOTES = {
    name: Remote(f"{ADDRESS}/{COMMIT}/data/{name}.csv", sha256=sha256, size=size)
    for name, (sha256, size) in FILES.items()
}


def fetch_paper() -> Table:
    """All 85 methods and 160 tasks, with what is known about both."""
    data, models, tasks = (fetch(REMOTES[name]) for name in FILES)
    return read_paper(data, models, tasks)
