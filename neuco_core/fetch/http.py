"""Read over HTTP, continuing where the last try stopped if the server allows it.

Also ``hf://datasets/owner/name@revision/path``: a file of a Hugging Face repository at one revision.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urljoin

from neuco_core.errors import FetchError
from neuco_core.fetch.transfer import CHUNK, Settings, Sink, TransientError, shown

TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
LONGEST_WAIT = 60.0
HF = re.compile(r"hf://(?P<repo>(?:datasets/|spaces/)?[^/@]+/[^/@]+)@(?P<revision>[^/]+)/(?P<path>.+)")
COMMIT = re.compile("[0-9a-f]{40}")


def read_hf(url: str, sink: Sink, settings: Settings) -> None:
    """Try once, over HTTP. ``HF_ENDPOINT`` names another server, e.g. a mirror."""
    match = HF.fullmatch(url)
    if not match or ".." in match["path"].split("/"):
        raise FetchError("bad address", where=url, expected="hf://datasets/owner/name@revision/path")
    address = f"{settings.hf_endpoint}/{match['repo']}/resolve/{match['revision']}/{quote(match['path'])}"
    read_http(address, sink, settings)


def read_http(url: str, sink: Sink, settings: Settings) -> None:
    """Try once."""
    import requests

    # The hash is that of the file as stored: no compression on the way.
    headers = {"Accept-Encoding": "identity", "User-Agent": "neuco"}
    if sink.received and sink.validator:
        headers |= {"Range": f"bytes={sink.received}-", "If-Range": sink.validator}
    try:
        hooks = {"response": keep_secure}
        with requests.get(url, headers=headers, timeout=settings.timeout, stream=True, hooks=hooks) as response:
            accept(response, url, sink)
            # The first answer has it; the file itself mostly comes from a host that it redirects to.
            commit = (response.history or [response])[0].headers.get("X-Repo-Commit", "")
            sink.commit = commit if COMMIT.fullmatch(commit) else ""
            for chunk in response.iter_content(CHUNK):
                sink.write(chunk)
    except (requests.exceptions.RequestException, ValueError) as error:
        raise _failure(error, url, settings) from error


def keep_secure(response: Any, *_: Any, **__: Any) -> None:
    """Refuse a redirect from https to http before it is followed: what is asked in the open, anybody may read."""
    target = urljoin(response.url, response.headers.get("Location", ""))
    if response.is_redirect and response.url.startswith("https://") and not target.startswith("https://"):
        response.close()
        got = shown(target)
        raise FetchError("the server redirects to an insecure address", where=shown(response.url), got=got)


def accept(response: Any, url: str, sink: Sink) -> None:
    """Check the headers of a response before any of its body is read."""
    status, headers = response.status_code, response.headers
    if status == 200:
        offset = 0
    elif status == 206 and (match := re.match(r"bytes (\d+)-", headers.get("Content-Range", ""))):
        offset = int(match[1])
    elif status in (206, 416):
        sink.reset()
        raise TransientError(f"the server cannot continue the download (HTTP {status})", where=shown(url))
    else:
        raise _refusal(status, headers, url)
    if headers.get("Content-Encoding", "identity") != "identity":
        # Offsets in the file and in the stream are then two things.
        sink.start(offset=offset, length=None, validator="")
        return
    length, etag = headers.get("Content-Length", ""), headers.get("ETag", "")
    validator = headers.get("Last-Modified", "") if not etag or etag.startswith("W/") else etag
    sink.start(offset=offset, length=int(length) if length.isdecimal() else None, validator=validator)


def _refusal(status: int, headers: Any, url: str) -> FetchError:
    where = shown(url)
    if status in TRANSIENT:
        wait = headers.get("Retry-After", "")
        seconds = min(float(wait), LONGEST_WAIT) if wait.isdecimal() else 0.0
        return TransientError(f"the server failed (HTTP {status})", where=where, wait=seconds)
    if status in (404, 410):
        return FetchError(f"the server has no such file (HTTP {status})", where=where, hint="Check the address")
    if headers.get("X-Error-Code") == "GatedRepo":
        hint = "Ask for access on the repository's page, download the file there, and link it: `neuco data link`"
        return FetchError(f"the owner grants access on request (HTTP {status})", where=where, hint=hint)
    if status in (401, 403, 407):
        hint = "Check that the file is public, or put your login for this host into ~/.netrc"
        return FetchError(f"the server refused access (HTTP {status})", where=where, hint=hint)
    return FetchError(f"the server did not send the file (HTTP {status})", where=where)


def _failure(error: Exception, url: str, settings: Settings) -> FetchError:
    from requests import exceptions as failed

    where = shown(url)
    if isinstance(error, failed.SSLError):
        hint = "Check the clock, the proxy, and REQUESTS_CA_BUNDLE if your network has its own certificates"
        return FetchError("no secure connection: the certificate was not accepted", where=where, hint=hint)
    if isinstance(error, failed.Timeout) or "Read timed out" in str(error):
        return TransientError(f"the server sent nothing for {settings.timeout:g} seconds", where=where)
    if isinstance(error, failed.ChunkedEncodingError | failed.ContentDecodingError):
        return TransientError("the connection was lost in the middle of the file", where=where)
    if isinstance(error, failed.ConnectionError):
        hint = "Check the network and the proxy settings; for files that you have, `neuco data link DATASET FOLDER`"
        return TransientError("the server cannot be reached", where=where, hint=hint)
    if isinstance(error, failed.TooManyRedirects):
        return FetchError("too many redirects", where=where)
    return FetchError(f"the address cannot be read: {error}", where=where)
