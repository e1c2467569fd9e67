"""After the merge: records and boards on upstream's main, by real git; and whatever must not change anything."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from ci.report import parse
from neuco_core.contract.contract import Finding
from tests.ci.helpers import Upstream, ci, git
from tests.ci.prs import edit, method, remove, task
from tests.ci.test_sandbox import need_bubblewrap

PLAIN = "registry/results/plain/digits_class@ridge+k=5.json"
GOOD = tuple(f"registry/results/{name}/good.json" for name in ("averaging", "random"))
BOARD = "registry/leaderboards/small.json"


class Reports(NamedTuple):
    task: Path
    method: Path


@pytest.fixture(scope="session")
def reports(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Reports of a good task and of a good method, each a pull request of its own."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("reports")
    for name, change in (("task", task), ("method", method)):
        fork = upstream.pull_request(f"published-{name}", change)
        out = folder / f"{name}.json"
        done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(out), NEUCO_CACHE=str(folder))
        assert done.returncode == 0, done.stdout + done.stderr
    return Reports(folder / "task.json", folder / "method.json")


def files(upstream: Upstream, folder: str = "registry") -> dict[str, str]:
    """Path → hash on upstream's main."""
    rows = git(upstream.bare, "ls-tree", "-r", "main", folder).splitlines()
    return {row.split("\t")[1]: row.split()[2] for row in rows}


def show(upstream: Upstream, path: str) -> str:
    return git(upstream.bare, "show", f"main:{path}")


def publish(upstream: Upstream, clone: str, *args: str | Path) -> tuple[int, str]:
    repo = upstream.folder / clone
    if not repo.exists():
        upstream.clone(clone)
    done = ci(repo, "publish", "--push", *map(str, args))
    return done.returncode, done.stdout + done.stderr


def merged(upstream: Upstream, name: str, change: object) -> str:
    """Merge a pull request; gives the commit that main was before."""
    before = git(upstream.bare, "rev-parse", "main").strip()
    upstream.merge(upstream.pull_request(name, change))  # type: ignore[arg-type]
    return before


def test_from_merge_to_withdrawal(own_upstream: Upstream, reports: Reports, tmp_path: Path) -> None:
    merged(own_upstream, "task", task)
    merged(own_upstream, "method", method)
    code, said = publish(
        own_upstream, "c1", "--report", reports.task, "--report", reports.method, "--site", tmp_path / "s"
    )
    assert (code, "4 records taken over, 0 withdrawn" in said, "pushed" in said) == (0, True, True), said
    made = files(own_upstream)
    assert {PLAIN, *GOOD, BOARD} <= set(made)
    assert [row["method"] for row in json.loads(show(own_upstream, BOARD))["rows"]] == ["plain"]
    changed = git(own_upstream.bare, "diff", "--name-only", "main~1", "main").splitlines()
    assert all(path.startswith(("registry/results/", "registry/leaderboards/")) for path in changed)
    assert (tmp_path / "s" / "index.html").is_file()

    code, said = publish(own_upstream, "c1", "--report", reports.method)
    assert (code, "nothing to publish" in said, "unchanged: plain on digits_class" in said) == (0, True, True), said
    assert files(own_upstream) == made

    merged(own_upstream, "removal", remove("neuco_methods/plain"))
    code, said = publish(own_upstream, "c1")
    assert (code, "0 records taken over, 1 withdrawn" in said) == (0, True), said
    now = files(own_upstream)
    withdrawn = PLAIN.replace("/results/", "/withdrawn/")
    assert now[withdrawn] == made[PLAIN]
    assert set(made) ^ set(now) <= {PLAIN, withdrawn, BOARD, *(set(made) & {p for p in made if "small" in p})}
    assert {path: made[path] for path in GOOD} == {path: now[path] for path in GOOD}


def test_two_publishes_at_once_lose_nothing(own_upstream: Upstream, reports: Reports) -> None:
    merged(own_upstream, "task", task)
    merged(own_upstream, "method", method)
    own_upstream.clone("c1")
    own_upstream.clone("c2")
    found: dict[str, tuple[int, str]] = {}
    pairs = (("c1", reports.task), ("c2", reports.method))
    threads = [
        threading.Thread(target=lambda n=name, p=path: found.update({n: publish(own_upstream, n, "--report", p)}))
        for name, path in pairs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [code for code, _ in found.values()] == [0, 0], found
    assert {PLAIN, *GOOD} <= set(files(own_upstream))


def test_what_is_refused_changes_nothing(own_upstream: Upstream, reports: Reports, tmp_path: Path) -> None:
    """One upstream, one merge, many bad reports: after all of them main is what it was."""
    before = merged(own_upstream, "method", method)
    start = git(own_upstream.bare, "rev-parse", "main")
    report, _ = parse(reports.method.read_bytes())
    bad = Finding("x", "y", "failed", "a reason")
    cases = {
        "not green": (msgspec.structs.replace(report, general=(*report.general, bad)), "not green"),
        "nothing checked": (msgspec.structs.replace(report, plugins=(), general=(), records=()), "not green"),
        "fallback": (msgspec.structs.replace(report, sandbox="fallback"), "without bubblewrap"),
    }
    for name, (made, words) in cases.items():
        path = tmp_path / f"{name}.json"
        path.write_bytes(made.to_bytes())
        code, said = publish(own_upstream, "c1", "--report", path)
        assert (code != 0, words in said) == (True, True), said
    folder = tmp_path / "named"
    folder.mkdir()
    shutil.copyfile(reports.method, folder / f"{'0' * 40}.json")
    code, said = publish(own_upstream, "c1", "--reports", folder)
    assert (code != 0, "about another commit" in said) == (True, True), said
    code, said = publish(own_upstream, "c1", "--report", reports.task, "--since", before)
    assert (code != 0, "the merge did not touch" in said) == (True, True), said
    code, said = publish(own_upstream, "c1", "--report", reports.method, "--report", tmp_path / "fallback.json")
    assert code != 0, said
    assert git(own_upstream.bare, "rev-parse", "main") == start


def test_a_record_of_other_code_than_was_merged_is_left_out(own_upstream: Upstream, reports: Reports) -> None:
    def other(fork: Path) -> None:
        method(fork)
        edit(fork / "neuco_methods/plain/__init__.py", "        return batch", "        print()\n        return batch")

    merged(own_upstream, "other", other)
    code, said = publish(own_upstream, "c1", "--report", reports.method)
    assert (code, "left out plain on digits_class" in said, "0 records taken over" in said) == (0, True, True), said
    assert PLAIN not in files(own_upstream)


def test_a_plugin_that_cannot_be_imported_keeps_its_records(own_upstream: Upstream, reports: Reports) -> None:
    merged(own_upstream, "method", method)
    publish(own_upstream, "c1", "--report", reports.method)
    merged(
        own_upstream, "broken", lambda fork: edit(fork / "neuco_methods/plain/__init__.py", "from", "import nix\nfrom")
    )
    code, said = publish(own_upstream, "c1")
    assert (code, "kept plain on digits_class" in said, "0 withdrawn" in said) == (0, True, True), said
    assert PLAIN in files(own_upstream)


def test_the_checkout_stays_as_it_is(own_upstream: Upstream, reports: Reports) -> None:
    merged(own_upstream, "method", method)
    clone = own_upstream.clone("c1")
    (clone / "README.md").write_text("my own work")
    code, said = publish(own_upstream, "c1", "--report", reports.method)
    assert code == 0, said
    assert git(clone, "status", "--porcelain").strip() == "M README.md"
    assert git(clone, "worktree", "list").count("\n") == 1
