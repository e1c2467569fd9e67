"""Publishing catches up: refused pushes, missing, late and waiting reports; the next run publishes all of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from ci.own import BRANCH, EVIDENCE, MESSAGE

from ci.report import Report
from neuco_core.contract.contract import Finding
from tests.ci.fake_github import REPOSITORY, FakeGitHub, fake_github, zipped
from tests.ci.helpers import Reports, Upstream, ci, git
from tests.ci.prs import method, task, write_file
from tests.ci.test_publish import GOOD, PENDING, PLAIN, Merge, files, forged, merged, ranked, show


def about(merge: Merge, report: Report, **fields: object) -> Report:
    return msgspec.structs.replace(report, base=merge.before, head=merge.after, **fields)


def publish(merge: Merge, *given: Report, server: FakeGitHub | None = None, since: bool = True) -> tuple[int, str]:
    """A run of publishing, in the checkout of a merge, with a folder of reports."""
    folder = merge.repo.with_name(f"{merge.repo.name}-reports")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, report in enumerate(given):
        (folder / f"{number}.json").write_bytes(report.to_bytes())
    chosen = ["--since", merge.before] if since else []
    github = {"GITHUB_API_URL": server.api, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": "x"} if server else {}
    done = ci(merge.repo, "publish", "--push", "--report", str(folder), *chosen, **github)
    return done.returncode, done.stdout + done.stderr


def pending(upstream: Upstream) -> dict[str, str]:
    if PENDING not in files(upstream):
        return {}
    return {item["plugin"]: item["why"] for item in json.loads(show(upstream, PENDING))["pending"]}


def protect(upstream: Upstream) -> Path:
    """Refuse pushes to main as branch protection does."""
    hook = upstream.bare / "hooks" / "update"
    words = 'echo "error: GH006: Protected branch update failed for $1." >&2'
    hook.write_text(f'#!/bin/sh\n[ "$1" = refs/heads/main ] && {words} && exit 1\nexit 0\n')
    hook.chmod(0o755)
    return hook


def test_a_missing_report_holds_up_nobody_and_may_come_late(own_upstream: Upstream, reports: Reports) -> None:
    first = merged(own_upstream, "method", method)
    code, said = publish(first)
    assert (code, "pending: neuco_methods/plain: no report is about it" in said) == (1, True), said
    broken = msgspec.structs.replace(about(first, reports.method), records=("{}",))
    code, said = publish(first, broken)
    assert (code, "a report cannot be read and brings nothing" in said) == (1, True), said
    second = merged(own_upstream, "task", task)
    code, said = publish(second, about(second, reports.task))
    assert (code, "3 records taken over" in said, "pending: neuco_methods/plain" in said) == (0, True, True), said
    assert set(GOOD) <= set(files(own_upstream))
    assert list(pending(own_upstream)) == ["neuco_methods/plain"]

    red = Finding("score", "plain", "failed", "the encoder ran out of time")
    code, said = publish(first, about(first, reports.method, general=(red,)))
    assert (code, "it is not green: plain: the encoder ran out of time" in said) == (1, True), said
    assert "the encoder ran out of time" in pending(own_upstream)["neuco_methods/plain"]

    code, said = publish(first, about(first, reports.method))
    assert (code, "1 records taken over" in said, "pushed" in said) == (0, True, True), said
    assert (pending(own_upstream), ranked(own_upstream)) == ({}, ["plain"])


def test_a_waiting_report_is_no_error_and_blocks_nothing(own_upstream: Upstream, reports: Reports) -> None:
    first, second = merged(own_upstream, "method", method), merged(own_upstream, "task", task)
    note = Finding("waiting", "plain", "skipped", "the labels are not pinned")
    (plugin,) = reports.method.plugins
    findings = (*(item for item in plugin.findings if item.check != "score"), note)
    waiting = about(first, reports.method, plugins=(msgspec.structs.replace(plugin, findings=findings),), records=())
    assert waiting.verdict == "waiting"
    code, said = publish(second, waiting, about(second, reports.task))
    assert (code, "it is waiting: the labels are not pinned" in said, "3 records" in said) == (0, True, True), said
    assert pending(own_upstream) == {"neuco_methods/plain": "it is waiting: the labels are not pinned"}

    # Re-scoring, at any later commit, settles it.
    tip = git(own_upstream.bare, "rev-parse", "main").strip()
    code, said = publish(second, msgspec.structs.replace(reports.method, base=tip, head=tip), since=False)
    assert (code, "1 records taken over" in said, pending(own_upstream)) == (0, True, {}), said


def test_reports_of_earlier_runs_are_asked_for(own_upstream: Upstream, reports: Reports) -> None:
    """The job that scored ended after the one that published: its report is among GitHub's artefacts."""
    first, second = merged(own_upstream, "method", method), merged(own_upstream, "task", task)
    with fake_github() as server:
        server.artefacts = [zipped(about(first, reports.method).to_bytes()), zipped(forged_for(first, reports))]
        run = {"id": 0, "path": ".github/workflows/publish.yml", "event": "push", "head_branch": "main"}
        # The second is what a pull request could leave: the same name and commit, from another workflow or event.
        others = [{"path": ".github/workflows/evil.yml"}, {"event": "pull_request"}, {"head_branch": "mine"}]
        server.runs = [{**run, **other, "id": 1, "head_sha": first.after} for other in others]
        server.runs.append({**run, "head_sha": first.after})
        code, said = publish(second, about(second, reports.task), server=server)
        assert (code, "4 records taken over" in said, "pushed" in said) == (0, True, True), said
    assert own_upstream.records()[PLAIN].decode() == reports.method.records[0]


def test_of_two_reports_on_a_cell_the_later_merges_counts(own_upstream: Upstream, reports: Reports) -> None:
    """Whichever is read first: the earlier one's record is of a plugin that was replaced since."""
    first = merged(own_upstream, "method", method)
    second = merged(own_upstream, "again", write_file("neuco_methods/plain/README.md", "# plain\n\nPixels.\n"))
    code, said = publish(second, about(second, reports.method), about(first, forged(reports.method)))
    assert (code, "1 records taken over" in said, pending(own_upstream)) == (0, True, {}), said
    assert own_upstream.records()[PLAIN].decode() == reports.method.records[0]


def forged_for(merge: Merge, reports: Reports) -> bytes:
    return about(merge, forged(reports.method)).to_bytes()


@pytest.mark.parametrize("how", ["merge", "squash"])
def test_where_main_takes_no_push_a_pull_request_carries_it(how: str, own_upstream: Upstream, reports: Reports) -> None:
    hook = protect(own_upstream)
    hook.chmod(0o644)
    first = merged(own_upstream, "method", method)
    hook.chmod(0o755)
    with fake_github() as server:
        code, said = publish(first, about(first, reports.method), server=server)
        assert (code, "1 records taken over" in said, "pull request 1 was opened" in said) == (0, True, True), said
        assert git(own_upstream.bare, "rev-parse", "main").strip() == first.after
        (pull,) = server.pulls
        assert (pull["head"]["ref"], pull["base"]["ref"], pull["title"]) == (BRANCH, "main", MESSAGE)

        # The next run makes all of it again, and more; the earlier proposal may still be the one that is merged.
        earlier = git(own_upstream.bare, "rev-parse", BRANCH).strip()
        hook.chmod(0o644)
        second = merged(own_upstream, "task", task)
        hook.chmod(0o755)
        server.artefacts = [zipped(about(first, reports.method).to_bytes())]
        run = {"id": 0, "path": ".github/workflows/publish.yml", "event": "push", "head_branch": "main"}
        server.runs = [{**run, "head_sha": first.after}]
        code, said = publish(second, about(second, reports.task), server=server)
        assert (code, "4 records taken over" in said, "pull request 1 has it now" in said) == (0, True, True), said
        code, said = publish(second, about(second, reports.task), server=server)
        assert f"the branch {BRANCH} has all of it already" in said, said

        hook.chmod(0o644)
        accept(own_upstream, how, earlier if how == "squash" else BRANCH)
        hook.chmod(0o755)
        code, said = publish(second, about(second, reports.task), server=server)
        wanted = "nothing to publish" if how == "merge" else "3 records taken over"
        assert (code, wanted in said) == (0, True), said
        hook.unlink()
        code, said = publish(second, about(second, reports.task), server=server)
        assert code == 0, said
    assert {PLAIN, *GOOD} <= set(files(own_upstream))
    assert (pending(own_upstream), ranked(own_upstream)) == ({}, ["plain"])


def accept(upstream: Upstream, how: str, what: str) -> None:
    """Merge a proposal as the web page does; a squash has another committer, and no parent of the proposal's."""
    git(upstream.base, "pull", "--quiet", "--ff-only", "origin", "main")
    git(upstream.bare, "update-ref", "refs/heads/chosen", what)  # an earlier proposal is on no branch any more
    git(upstream.base, "fetch", "--quiet", "origin", "+refs/heads/chosen:refs/remotes/origin/chosen")
    name = "origin/chosen"
    if how == "merge":
        git(upstream.base, "merge", "--quiet", "--no-ff", "-m", "Merge pull request #1", name)
    else:
        git(upstream.base, "merge", "--quiet", "--squash", name)
        git(upstream.base, "-c", "user.email=noreply@github.com", "commit", "--quiet", "-m", f"{MESSAGE} (#1)")
    git(upstream.base, "push", "--quiet", "origin", "HEAD:main")


def test_an_edit_before_the_first_publishing_is_refused(own_upstream: Upstream, reports: Reports) -> None:
    merge = merged(own_upstream, "forger", write_file(PLAIN, forged(reports.method).records[0]))
    code, said = publish(merge)
    assert (code != 0, PLAIN in said, "Revert the merge" in said) == (True, True, True), said


def test_a_pull_request_that_passes_for_ours_is_not_believed(own_upstream: Upstream, reports: Reports) -> None:
    """The name of the branch, committer, message and trailers are publishing's; the record is not."""
    first = merged(own_upstream, "method", method)
    assert publish(first, about(first, reports.method))[0] == 0
    fork = own_upstream.pull_request(BRANCH, write_file(PLAIN, forged(reports.method).records[0]))
    from ci.own import content

    tip = git(own_upstream.bare, "rev-parse", "main").strip()
    trailer = f"Registry: {content(fork, 'HEAD')} {tip}"
    git(fork, "commit", "--quiet", "--amend", "-m", MESSAGE, "-m", trailer)
    git(fork, "update-ref", EVIDENCE, "HEAD")  # in the fork: it has no say upstream
    own_upstream.merge(fork)
    later = merged(own_upstream, "task", task)
    code, said = publish(later, about(later, reports.task))
    assert (code != 0, PLAIN in said, "Revert the merge" in said) == (True, True, True), said

    # Neither if a true proposal is there at the same time: its digest is of another content.
    hook = protect(own_upstream)
    git(later.repo, "revert", "--no-edit", "-m", "1", "HEAD~1")
    hook.chmod(0o644)
    git(later.repo, "push", "--quiet", "origin", "HEAD:main")
    hook.chmod(0o755)
    code, said = publish(later, about(later, reports.task))
    assert (code, f"pushed to the branch {BRANCH}" in said) == (0, True), said
    hook.chmod(0o644)
    merged(own_upstream, "again", write_file(PLAIN, forged(reports.method).records[0]))
    code, said = publish(later, about(later, reports.task))
    assert (code != 0, PLAIN in said) == (True, True), said
