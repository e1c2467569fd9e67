"""Which commits on main are publishing's own, and what was edited since: also where a pull request carried them there.

A commit that publishing pushed itself is known by its committer on main's own line, where GitHub is the committer of
all that it merges. Where main is protected, publishing proposes its commit on the branch ``registry-update``. What is
merged from there is known by its content: the digests of what was proposed are in the message of the commit at
``refs/neuco/published``, which no pull request can write. A pull request from elsewhere that looks the same, has the
same committer, message or branch name, has another content, and counts as an edit.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from ci.changed import PROTECTED, git
from neuco_core.errors import DataError

MESSAGE = "Update the registry: records, boards"
INDEX_MESSAGE = "Update the registry: stored embeddings"  # ours too, but no merge was looked at for it
BRANCH = "registry-update"
EVIDENCE = "refs/neuco/published"
TRAILER = re.compile(r"^Registry: ([0-9a-f]{64}) ([0-9a-f]{40,64})$", re.MULTILINE)
MOST_TRAILERS = 100
ROOT = "registry/"


class Own(NamedTuple):
    """The newest commit of ours on main; merges up to ``base`` were considered."""

    commit: str
    base: str


def first_parents(repo: Path, tip: str) -> list[str]:
    """Main's own line, the newest first."""
    return git(repo, "rev-list", "--first-parent", tip).split()


def last_own(repo: Path, tip: str) -> Own | None:
    """The newest commit of ours on main's own line; before the first there is none."""
    who = git(repo, "var", "GIT_COMMITTER_IDENT").rpartition(">")[0].rpartition("<")[2]
    proposed = dict(TRAILER.findall(_evidence(repo)))
    touching = set(git(repo, "log", "--first-parent", "--format=%H", tip, "--", ROOT).split()) if proposed else ()
    order = list(proposed)  # the newest proposal first
    newest = oldest = ""
    carried: list[tuple[int, Own]] = []
    for row in git(repo, "log", "--first-parent", "--format=%H %ce %s", tip).split("\n"):
        commit, _, rest = row.partition(" ")
        if rest == f"{who} {INDEX_MESSAGE}":
            newest, oldest = newest or commit, commit
        if rest == f"{who} {MESSAGE}":
            carried.append((len(order), Own(newest or commit, commit)))
            break
        if commit in touching and (digest := content(repo, commit)) in proposed:
            carried.append((order.index(digest), Own(newest or commit, proposed[digest])))
            if digest == order[0]:
                break
    if carried:
        # Not simply the last: a pull request that takes main back to what an earlier proposal had is an edit.
        return min(carried, key=lambda item: item[0])[1]
    return Own(newest, anchor(repo, f"{oldest}^")) if newest else None


def anchor(repo: Path, tip: str) -> str:
    """Where catching up begins before there is a commit of ours: what is on main then counts as published.

    That is the last commit that changed records or boards, by hand; if none did, the first of all.
    """
    names = git(
        repo, "log", "--first-parent", "--format=%H", tip, "--", *(p for p in PROTECTED if p[-1] != "-")
    ).split()
    return (names or first_parents(repo, tip)[-1:])[0]


def edits(repo: Path, own: Own | None, tip: str, since: str) -> list[str]:
    """The records and boards that differ from our last commit; before the first, those that this merge brings."""
    start, end = (own.commit, tip) if own else (since, "HEAD")
    if not start:
        return []
    names = git(repo, "diff", "--no-renames", "--name-only", "-z", start, end, "--", ROOT).split("\0")
    return [name for name in names if name.startswith(PROTECTED)]


def content(repo: Path, commit: str) -> str:
    """The digest of all that only publishing writes, names and bytes, in a commit."""
    rows = git(repo, "ls-tree", "-r", "-z", commit, "--", ROOT).split("\0")
    ours = [row for row in rows if row.partition("\t")[2].startswith(PROTECTED)]
    return hashlib.sha256("\0".join(ours).encode()).hexdigest()


def propose(tree: Path, start: str) -> str:
    """Push the last commit of ``tree`` for a pull request, since main takes none directly. Gives what was done.

    The digests of earlier proposals are kept: one of them may be merged at this very moment.
    """
    before = {name: _there(tree, name) for name in (f"refs/heads/{BRANCH}", EVIDENCE)}
    earlier = TRAILER.findall(_evidence(tree))
    own = (content(tree, "HEAD"), start)
    if before[EVIDENCE] and before[EVIDENCE] == before[f"refs/heads/{BRANCH}"] and earlier[:1] == [own]:
        return f"the branch {BRANCH} has all of it already"
    pairs = [own, *(pair for pair in earlier if pair[0] != own[0])][:MOST_TRAILERS]
    trailers = "\n".join(f"Registry: {digest} {base}" for digest, base in pairs)
    git(tree, "commit", "--quiet", "--amend", "--allow-empty", "-m", MESSAGE, "-m", trailers)
    leases = [f"--force-with-lease={name}:{commit}" for name, commit in before.items()]
    git(tree, "push", "--quiet", "--atomic", *leases, "origin", *(f"+HEAD:{name}" for name in before))
    return f"main takes no push, so it was pushed to the branch {BRANCH}"


def _there(repo: Path, name: str) -> str:
    return git(repo, "ls-remote", "origin", name).partition("\t")[0]


def _evidence(repo: Path) -> str:
    """The message of the commit that was proposed last, from the upstream repository itself."""
    if not _there(repo, EVIDENCE):
        return ""
    git(repo, "fetch", "--quiet", "--no-tags", "origin", f"+{EVIDENCE}:{EVIDENCE}")
    message = git(repo, "log", "-1", "--format=%B", EVIDENCE)
    if not message.startswith(MESSAGE):
        raise DataError(f"{EVIDENCE} is not a commit of publishing", got=message[:80], hint="Delete that ref upstream")
    return message
