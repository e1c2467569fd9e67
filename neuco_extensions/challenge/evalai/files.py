"""Bring the file of a submission here: from known places only, up to a size, within a time, under our own name.

Its address comes from EvalAI and in part from a team. It must not lead into the host's network, and it says nothing
about where the file is put.
"""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from neuco_core.errors import FetchError, UsageError
from neuco_core.fetch.http import accept
from neuco_core.fetch.transfer import CHUNK, Settings, Sink, TransientError, Transport, download, shown
from neuco_extensions.challenge.evalai.api import Account, origin

REDIRECTS = 3


class RefusedPlaceError(FetchError):
    """An address that is not one of the places for files of submissions."""


def bring(url: str, path: Path, account: Account) -> None:
    """Put the file there, whole: a part has another name. What is there already is not fetched again."""
    if path.is_file():
        return
    allowed(url, account)
    part = path.with_suffix(".part")
    settings = Settings(max_bytes=account.max_bytes, deadline=account.deadline, backoff=account.backoff)
    try:
        download(url, part, settings, size=None, progress=False, transport=_transport(account))
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def allowed(url: str, account: Account) -> None:
    """Raise unless a file may be read from there: a place that was named, and not a name for the host's own network."""
    try:
        source = origin(url)
    except UsageError:
        raise RefusedPlaceError("the file has no address that can be read", where="EvalAI") from None
    scheme, host, port = source
    if source not in account.origins:
        hint = f"If it is right, add --files {scheme}://{host}" + (f":{port}" if port not in (80, 443) else "")
        raise RefusedPlaceError(
            "the file is at a place that is not allowed", got=f"{scheme}://{host}:{port}", hint=hint
        )
    # The server may be in the host's own network; a public store that resolves to it is a trick.
    if source == origin(account.server):
        return
    try:
        addresses = [entry[4][0] for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError:
        return  # the download will say so
    if not all(ipaddress.ip_address(str(address).partition("%")[0]).is_global for address in addresses):
        raise RefusedPlaceError("the name of a file's place leads into a private network", got=host)


def _transport(account: Account) -> Transport:
    """How a file is read: each redirect is looked at before it is followed."""
    options: dict[str, Any] = {
        "stream": True,
        "allow_redirects": False,
        "headers": {"Accept-Encoding": "identity", "User-Agent": "neuco"},
        "auth": lambda request: request,  # it adds nothing: no line of the host's .netrc goes to a store of files
    }

    def read(url: str, sink: Sink, settings: Settings) -> None:
        for _ in range(REDIRECTS + 1):
            allowed(url, account)
            where = urlsplit(shown(url))._replace(query="", fragment="").geturl()
            try:
                with requests.get(url, **options, timeout=settings.timeout) as answer:
                    if answer.is_redirect:
                        url = urljoin(url, answer.headers["Location"])
                        continue
                    accept(answer, url, sink)
                    # As it is stored: a small file that unpacks to a large one stays small, and is no table.
                    while chunk := answer.raw.read(CHUNK, decode_content=False):
                        sink.write(chunk)
                    length = answer.headers.get("Content-Length", "")
            except (RequestException, HTTPError) as error:
                raise TransientError(f"the file cannot be read ({type(error).__name__})", where=where) from None
            if length.isdecimal() and sink.received != int(length):
                raise TransientError("the connection was lost in the middle of the file", where=where)
            return
        raise RefusedPlaceError("too many redirects", where=where)

    return read
