"""A server that answers as Hugging Face does: branches that move, commits, redirects, its errors.

Small files come from the same host, large ones (LFS) from a CDN, which is at another name of this machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from urllib.parse import unquote

from tests.loopback import Loopback, LoopbackHandler

LFS = (".npz", ".npy", ".parquet", ".zip")


class Handler(LoopbackHandler):
    server: HuggingFace

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0]).strip("/")
        self.server.requests.append(path)
        if path.startswith("blobs/"):  # where the bytes of a file are: the answer there knows no repository
            self.answer(200, self.server.blobs[path.removeprefix("blobs/")], ETag=f'"{path[6:]}"')
            return
        repo, _, rest = path.partition("/resolve/")
        revision, _, file = rest.partition("/")
        commit = self.server.branches.get(revision, revision)
        if repo != self.server.repo:
            self.answer(401, b"Invalid username or password.", X_Error_Code="RepoNotFound")
        elif self.server.gated:
            self.answer(401, b"Access to this resource is restricted.", X_Error_Code="GatedRepo")
        elif commit not in self.server.commits:
            self.answer(404, b"Invalid rev id", X_Error_Code="RevisionNotFound")
        elif file not in self.server.commits[commit]:
            self.answer(404, b"Entry not found", X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        else:
            sha256 = self.server.commits[commit][file]
            linked = {"X_Linked_ETag": f'"{sha256}"', "X_Linked_Size": str(len(self.server.blobs[sha256]))}
            host = f"http://localhost:{self.server.server_port}" if file.endswith(LFS) else ""
            self.answer(302, Location=f"{host}/blobs/{sha256}", X_Repo_Commit=commit, **linked)


class HuggingFace(Loopback):
    """One repository, such as ``datasets/somebody/set``, with these files on main."""

    def __init__(self, repo: str, files: Mapping[str, bytes]) -> None:
        super().__init__(Handler)
        self.repo, self.gated = repo, False
        self.blobs: dict[str, bytes] = {}
        self.commits: dict[str, dict[str, str]] = {}  # commit → file → sha256
        self.branches: dict[str, str] = {}
        self.requests: list[str] = []
        self.push(files)

    def push(self, files: Mapping[str, bytes]) -> None:
        """Commit files on top of what main has."""
        before = self.commits.get(self.branches.get("main", ""), {})
        new = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        self.blobs |= {new[name]: data for name, data in files.items()}
        commit = hashlib.sha1(repr((before, new)).encode(), usedforsecurity=False).hexdigest()
        self.commits[commit] = before | new
        self.branches["main"] = commit
