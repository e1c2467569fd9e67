"""Re-scoring: what has no record or an outdated one is scored on main and published; a sample is verified."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from ci.report import Report, parse
from neuco_core.records.model import summary
from neuco_core.records.store import read_all, write_records
from tests.ci.fake_github import REPOSITORY, fake_github
from tests.ci.helpers import Upstream, ci, git
from tests.ci.prs import edit
from tests.ci.test_publish import BOARD, merged, ranked, show
from tests.ci.test_sandbox import need_bubblewrap

METHODS = {"averaging", "averaging_notebook", "random"}


def rescore(repo: Path, *options: str) -> tuple[int, str, Report]:
    out = repo.with_name(f"{repo.name}.json")
    done = ci(repo, "rescore", "--out", str(out), *options)
    return done.returncode, done.stdout + done.stderr, parse(out.read_bytes())[0]


def publish(repo: Path, *options: str, **variables: str) -> str:
    path = repo.with_name(f"{repo.name}.json")
    given = ["--report", str(path)] if path.exists() else []
    done = ci(repo, "publish", "--push", *given, *options, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bump(fork: Path) -> None:
    """A new version of the scorer: every record is outdated at once."""
    edit(fork / "neuco_core/scoring/scorer.py", "@versioned(1)\ndef score(", "@versioned(2)\ndef score(")


def remark(fork: Path) -> None:
    for name in ("neuco_core/text.py", "neuco_methods/averaging/README.md"):
        path = fork / name
        path.write_text(path.read_text() + "\n# A remark\n")


def test_main_is_scored_again_where_it_must_be(own_upstream: Upstream) -> None:
    need_bubblewrap()
    repo = own_upstream.clone("first")
    code, said, report = rescore(repo, "--suite", "small")
    assert (code, "3 new" in said, len(report.records), report.base) == (0, True, 3, report.head), said
    assert "3 records taken over" in publish(repo)
    assert set(ranked(own_upstream)) == METHODS
    board = json.loads(show(own_upstream, "registry/leaderboards/all-digits.json"))
    assert (board["suite"]["id"], [task["id"] for task in board["tasks"]]) == ("all-digits", ["digits_class"])

    # A sample comes again; a record that does not is reported, and nothing is replaced.
    repo = own_upstream.clone("second")
    code, said, report = rescore(repo, "--sample", "3", "--verify")
    assert (code, said.count("ok verify"), report.records) == (0, 3, ()), said
    record = next(record for record in read_all(repo / "registry") if record.method == "random")
    splits = tuple(value and value + 0.05 for value in record.per_split)
    mean, std, q = summary(splits, True) or (0, 0, 0)
    changed = msgspec.structs.replace(record, per_split=splits, mean=mean, std=std, q=q, metrics={})
    write_records(repo / "registry", [changed])
    code, said, report = rescore(repo, "--sample", "3", "--verify")
    assert (code, "failed verify random on digits_class" in said, report.records) == (1, True, ()), said
    (repo.with_name("second.json")).unlink()

    # A merge of the core: publishing asks for re-scoring, keeps the board, and takes what re-scoring brings.
    before = show(own_upstream, BOARD)
    merge = merged(own_upstream, "scorer", bump)
    with fake_github() as server:
        github = {"GITHUB_API_URL": server.api, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": "x"}
        said = publish(merge.repo, "--since", merge.before, **github)
    assert (server.started, "would lose averaging" in said) == (["rescore.yml"], True), said
    assert show(own_upstream, BOARD) == before
    code, said, report = rescore(merge.repo)
    # New are the cells of the living suite, which came with the first publishing and scores by the dataset's protocol.
    assert (code, "3 new, 3 stale" in said, len(report.records)) == (0, True, 6), said
    said = publish(merge.repo)
    assert ("6 records taken over" in said, "would lose" in said) == (True, False), said
    assert (set(ranked(own_upstream)), show(own_upstream, BOARD) != before) == (METHODS, True)
    repo = own_upstream.clone("third")
    code, said, report = rescore(repo)
    assert (code, "nothing to score" in said, report.records) == (0, True, ()), said
    assert git(repo, "status", "--porcelain") == ""

    # A merge of the core and of a card leaves a plugin pending, of which there is nothing to score: its records hold.
    merge = merged(own_upstream, "remark", remark)
    assert "pending: neuco_methods/averaging" in publish(merge.repo, "--since", merge.before)
    repo = own_upstream.clone("fourth")
    code, said, report = rescore(repo)
    assert (code, "nothing to score" in said, [plugin.name for plugin in report.plugins]) == (0, True, ["averaging"])
    publish(repo)
    assert "registry/pending.json" not in git(own_upstream.bare, "ls-tree", "-r", "--name-only", "main")
