"""Git as CI uses it: what it shows is what would be merged, and what it pushes goes to main, or to a pull request."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from neuco_core.errors import DataError, NeucoError
from neuco_core.text import join_names

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
BRANCH = "registry-update"  # where main takes no push
TRIES = 20
BODY = "Reconciling made this commit, and main takes no push. Until it is merged, the next run makes all of it again."
Propose = Callable[[str, str, str], str]  # of a branch, a title and a text; what was done, in words


def git(repo: Path, *args: str) -> str:
    """Run git and return what it prints; paths are not quoted, whatever characters they have."""
    return git_bytes(repo, *args).decode("utf-8", "backslashreplace")


def git_bytes(repo: Path, *args: str, stdin: bytes | None = None) -> bytes:
    command, environment = _command(repo, *args)
    done = subprocess.run(command, capture_output=True, env=environment, input=stdin)
    if done.returncode:
        raise DataError(f"git {args[0]} failed: {done.stderr.decode('utf-8', 'replace').strip()}", where=repo)
    return done.stdout


def _command(repo: Path, *args: str) -> tuple[list[str], dict[str, str]]:
    # No replaced objects and no hooks: what git shows is what would be merged.
    safe = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    return ["git", *safe, "-C", str(repo), *args], {**os.environ, "GIT_NO_REPLACE_OBJECTS": "1"}


def commit_of(repo: Path, name: str) -> str:
    """The commit of a branch, or a commit by its number. Never a tag: one named ``origin/main`` would hide changes."""
    if COMMIT.fullmatch(name):
        return name
    for namespace in ("refs/remotes/", "refs/heads/"):
        try:
            return git(repo, "rev-parse", "--verify", "--quiet", f"{namespace}{name}^{{commit}}").strip()
        except DataError:
            continue
    hint = "Run `git fetch origin main`, or name another branch with --since"
    raise DataError("no such branch", where=repo, expected="a branch, or a commit's whole number", got=name, hint=hint)


def uncommitted(repo: Path) -> str:
    """What of a contribution is not committed, in words: only commits are judged. Empty if nothing is."""
    lines = git(repo, "status", "--porcelain", "--", "neuco_tasks", "neuco_methods", "registry/geobench").splitlines()
    names = join_names([line[3:] for line in lines], 3)
    return f"not committed, so not judged: {names}. Commit it, and run this again" if lines else ""


def blobs(repo: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The contents of objects as they are stored: no attribute, no filter and no line ending has a say.

    Each is read once, and one at a time, so that memory holds no more than the largest.
    """
    command, environment = _command(repo, "cat-file", "--batch")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        if process.stdin is None or process.stdout is None:  # never: both are asked for
            raise DataError("git cat-file has no pipes", where=repo)
        for name in dict.fromkeys(names):
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            fields = process.stdout.readline().split()
            if len(fields) != 3:
                raise DataError("git has no such object", where=repo, got=name, hint="Fetch the whole history")
            yield name, process.stdout.read(int(fields[2]))
            process.stdout.read(1)


def check_out(repo: Path, commit: str, target: Path, *below: str) -> Path:
    """The files of a commit, whatever the working tree is like: what is judged is what would be merged."""
    rows = git_bytes(repo, "ls-tree", "-r", "-z", commit, "--", *below).split(b"\0")[:-1]
    files = [(row.split()[2].decode(), os.fsdecode(row.partition(b"\t")[2])) for row in rows if row.startswith(b"100")]
    paths: dict[str, list[str]] = {}
    for blob, path in files:
        # git itself never makes such a path, and never checks one out.
        if not {"", ".", "..", ".git"}.isdisjoint(path.split("/")):
            raise DataError("a path that leads elsewhere", where=commit, got=path)
        paths.setdefault(blob, []).append(path)
    for blob, content in blobs(repo, list(paths)):
        for path in paths[blob]:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(content)
    return target


def require_main(repo: Path) -> None:
    """Refuse a checkout whose code is not main's: what it would push is not what main's code makes."""
    start, head = _main(repo), git(repo, "rev-parse", "HEAD").strip()
    if git(repo, "merge-base", start, head).strip() != head:
        raise DataError("not a checkout of main", where=repo, got=head, hint="Run `git switch main`")
    edited = git(repo, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!registry")
    if edited:
        raise DataError("files of the checkout were edited", where=repo, got=edited.split()[-1], hint="Commit them")


def deliver(repo: Path, message: str, update: Callable[[Path], object], propose: Propose | None = None) -> str:
    """Commit to main what ``update`` does to a registry, in words; the checkout ``repo`` stays as it is.

    It is done to what main is at that moment, and done again if somebody else was faster. Where main takes no push,
    the commit goes to a branch of its own, and ``propose`` opens a pull request from it.
    """
    for _ in range(TRIES):
        start = _main(repo)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            tree = Path(folder) / "main"
            git(repo, "worktree", "add", "--quiet", "--detach", str(tree), start)
            try:
                update(tree / "registry")
                git(tree, "add", "--all", "--force", "registry")
                if not git(tree, "status", "--porcelain", "registry"):
                    return "main has all of it already"
                git(tree, "commit", "--quiet", "-m", message)
                try:
                    git(tree, "push", "--quiet", "origin", "HEAD:refs/heads/main")
                except DataError:
                    if _main(repo) == start:
                        return _propose(tree, message, propose)
                else:
                    return "pushed to main"
            finally:
                git(repo, "worktree", "remove", "--force", str(tree))
        time.sleep(secrets.randbelow(1000) / 1000)
    raise DataError(f"main moved {TRIES} times", hint="Run it again when it is quieter")


def _main(repo: Path) -> str:
    git(repo, "fetch", "--quiet", "origin", "refs/heads/main")
    return git(repo, "rev-parse", "FETCH_HEAD").strip()


def _propose(tree: Path, message: str, propose: Propose | None) -> str:
    """Push to the branch, which replaces an earlier proposal, and see that a pull request carries it."""
    git(tree, "push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{BRANCH}")
    done = f"main takes no push, so it was pushed to the branch {BRANCH}"
    if propose is None:
        return f"{done}; open a pull request from it to main"
    try:
        return f"{done}; {propose(BRANCH, message, BODY)}"
    except NeucoError as error:  # the branch is there: a maintainer can open it
        return f"{done}; open a pull request from it to main ({error})"
