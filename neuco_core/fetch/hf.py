"""``hf://datasets/owner/name@revision/path``: a file of a Hugging Face repository at one revision."""

from __future__ import annotations

import re
from urllib.parse import quote

from neuco_core.errors import FetchError
from neuco_core.fetch.settings import Settings
from neuco_core.fetch.transfer import Sink

ADDRESS = re.compile(r"hf://(?P<repo>(?:datasets/|spaces/)?[^/@]+/[^/@]+)@(?P<revision>[^/]+)/(?P<path>.+)")


def read_hf(url: str, sink: Sink, settings: Settings) -> None:
    """Try once, over HTTP."""
    from neuco_core.fetch.http import read_http

    read_http(resolve_url(url, settings.hf_endpoint), sink, settings)


def resolve_url(url: str, endpoint: str) -> str:
    """The plain address behind an ``hf://`` one. ``HF_ENDPOINT`` names another server, e.g. a mirror."""
    match = ADDRESS.fullmatch(url)
    if not match or ".." in match["path"].split("/"):
        raise FetchError("bad address", where=url, expected="hf://datasets/owner/name@revision/path")
    return f"{endpoint}/{match['repo']}/resolve/{match['revision']}/{quote(match['path'])}"
