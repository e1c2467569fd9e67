"""After the merge: records and boards on upstream's main, by real git; and whatever must not change anything."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from ci.publish import publish as run
from ci.report import Report, parse
from neuco_core.contract.contract import Finding
from neuco_core.errors import DataError
from neuco_core.records.model import Record, fingerprint, record_line, summary
from neuco_core.records.store import write_records
from tests.ci.helpers import Reports, Upstream, ci, git
from tests.ci.prs import both, edit, method, remove, task, write_file
from tests.ci.test_sandbox import need_bubblewrap
from tests.contract.helpers import METHOD

PLAIN = "registry/results/plain/digits_class@ridge+k=5.json"
RIVAL = "registry/results/averaging/digits_class@ridge+k=5.json"
GOOD = tuple(f"registry/results/{name}/good.json" for name in ("averaging", "random"))
BOARD = "registry/leaderboards/small.json"
PENDING = "registry/pending.json"
KEY = ("plain", "digits_class", "ridge+k=5")


class Merge(NamedTuple):
    """The commits of main before and after, and a checkout of the latter."""

    before: str
    after: str
    repo: Path


def files(upstream: Upstream, folder: str = "registry") -> dict[str, str]:
    """Path → hash on upstream's main; records by their places, in the stead of the packs that hold them."""
    rows = git(upstream.bare, "ls-tree", "-r", "main", folder).splitlines()
    plain = {row.split("\t")[1]: row.split()[2] for row in rows}
    packed = {path: hashlib.sha256(data).hexdigest() for path, data in upstream.records().items()}
    return {path: plain[path] for path in plain if not path.startswith("registry/records")} | packed


def show(upstream: Upstream, path: str) -> str:
    return git(upstream.bare, "show", f"main:{path}")


def ranked(upstream: Upstream) -> list[str]:
    """The methods with a rank, and copies of them: on digits, which have one band, both averaging methods are one."""
    rows = json.loads(show(upstream, BOARD))["rows"]
    return [row["method"] for row in rows if row["rank"] or row["same_as"]]


def merged(upstream: Upstream, name: str, change: Callable[[Path], None]) -> Merge:
    before = git(upstream.bare, "rev-parse", "main").strip()
    upstream.merge(upstream.pull_request(name, change))
    return Merge(before, git(upstream.bare, "rev-parse", "main").strip(), upstream.clone(f"after-{name}"))


def publish(merge: Merge, report: Report | None = None, *args: str | Path, since: str | None = None) -> tuple[int, str]:
    """Publish a report as that of the merge."""
    chosen = ["--since", merge.before if since is None else since, *map(str, args)]
    if report is not None:
        path = merge.repo.with_name(f"{merge.repo.name}.json")
        path.write_bytes(msgspec.structs.replace(report, base=merge.before, head=merge.after).to_bytes())
        chosen += ["--report", str(path)]
    done = ci(merge.repo, "publish", "--push", *chosen)
    return done.returncode, done.stdout + done.stderr


def forged(report: Report) -> Report:
    """The same report with its record made better by hand; it is right in every way that can be checked."""
    record = parse(report.to_bytes())[1][0]
    splits = (0.999,) * len(record.per_split)
    mean, std, q = summary(splits, True) or (0, 0, 0)
    values = {"per_split": splits, "mean": mean, "std": std, "q": q, "metrics": {}}
    return _with(report, msgspec.structs.replace(record, **values))


def _with(report: Report, record: Record) -> Report:
    record = msgspec.structs.replace(record, fingerprint=fingerprint(record.inputs))
    return msgspec.structs.replace(report, records=(record_line(record).decode(),))


def test_from_merge_to_withdrawal(own_upstream: Upstream, reports: Reports, tmp_path: Path) -> None:
    code, said = publish(merged(own_upstream, "task", task), reports.task)
    assert (code, "3 records taken over, 0 withdrawn" in said, "pushed" in said) == (0, True, True), said
    # The task is in no frozen suite: the living one of its dataset shows it the same day.
    living = json.loads(show(own_upstream, "registry/leaderboards/all-good.json"))
    assert [task["id"] for task in living["tasks"]] == ["good"]
    assert {row["method"] for row in living["rows"]} == {"averaging", "averaging_notebook", "random"}
    merge = merged(own_upstream, "method", method)
    (merge.repo / "README.md").write_text("my own work")
    code, said = publish(merge, reports.method, "--site", tmp_path / "s")
    assert (code, "1 records taken over, 0 withdrawn" in said, "pushed" in said) == (0, True, True), said
    made = files(own_upstream)
    assert {PLAIN, *GOOD, BOARD} <= set(made)
    assert ranked(own_upstream) == ["plain"]
    changed = git(own_upstream.bare, "diff", "--name-only", "main~1", "main").splitlines()
    allowed = ("registry/records/plain/", "registry/leaderboards/", "registry/records.json", "registry/suites/all-")
    assert all(path.startswith(allowed) for path in changed), "no pack of another method is touched"
    assert (tmp_path / "s" / "index.html").is_file()
    assert git(merge.repo, "status", "--porcelain").strip() == "M README.md"
    assert git(merge.repo, "worktree", "list").count("\n") == 1

    code, said = publish(merge, reports.method)
    assert (code, "nothing to publish" in said, "unchanged: plain on digits_class" in said) == (0, True, True), said

    removal = merged(own_upstream, "removal", remove("neuco_methods/plain"))
    code, said = publish(removal)
    assert (code != 0, "suite 'small' compares records of method 'plain'" in said) == (True, True), said
    assert "--withdraw plain" in said
    assert files(own_upstream) == made

    code, said = publish(removal, None, "--withdraw", "other plain")
    assert (code, "0 records taken over, 1 withdrawn" in said) == (0, True), said
    now = files(own_upstream)
    withdrawn = PLAIN.replace("/results/", "/withdrawn/")
    assert show(own_upstream, withdrawn) == reports.method.records[0]
    assert set(made) ^ set(now) == {PLAIN, withdrawn}
    assert {path: made[path] for path in GOOD} == {path: now[path] for path in GOOD}


def test_a_new_method_is_scored_on_a_new_task_after_the_merge(upstream: Upstream, tmp_path: Path) -> None:
    """In the pull request it is not: there, the task's cubes could bring labels to the method."""
    need_bubblewrap()
    fork = upstream.pull_request("published-both", both(task, method))
    out = tmp_path / "report.json"
    done = ci(upstream.base, "score-pr", "--head", str(fork), "--merged", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("plain", "good") in [(r.method, r.task) for r in parse(out.read_bytes())[1] if r.ok]


def test_two_publishes_at_once_lose_nothing(own_upstream: Upstream, reports: Reports) -> None:
    pairs = [(merged(own_upstream, "task", task), reports.task), (merged(own_upstream, "m", method), reports.method)]
    answers: list[tuple[int, str]] = []
    threads = [threading.Thread(target=lambda pair=pair: answers.append(publish(*pair))) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [code for code, _ in answers] == [0, 0], answers
    assert {PLAIN, *GOOD} <= set(files(own_upstream))


def test_what_is_refused_changes_nothing(own_upstream: Upstream, reports: Reports) -> None:
    """One upstream, one merge, many bad reports: after all of them no record is there, and the plugin is pending."""
    merge = merged(own_upstream, "method", method)
    git(merge.repo, "tag", "origin/main")
    good = msgspec.structs.replace(reports.method, base=merge.before, head=merge.after)
    bad = Finding("x", "y", "failed", "a reason")
    cases: list[tuple[str, dict[str, Any]]] = [
        ("not green", {"general": (*good.general, bad)}),
        ("without bubblewrap", {"sandbox": "trust"}),
        ("pending: neuco_methods/plain", {"plugins": (), "records": ()}),
        ("the merge did not touch", {"plugins": reports.task.plugins, "records": ()}),
        ("other commits than main's", {"head": "0" * 40}),
        ("other commits than main's", {"base": "0" * 40}),
        ("other commits than main's", {"base": merge.after, "head": merge.before}),
    ]
    for words, fields in cases:
        report = msgspec.structs.replace(good, **fields)
        done = run(merge.repo, [report.to_bytes()], push=True, since=merge.before)
        assert any(words in line for line in done.loud), (words, done)
    for since in ("origin/main", merge.before[:12]):
        with pytest.raises(DataError, match="not a commit"):
            run(merge.repo, [good.to_bytes()], push=True, since=since)
    assert (PLAIN in files(own_upstream), "neuco_methods/plain" in show(own_upstream, PENDING)) == (False, True)
    changes = {
        "neuco_tasks/Böse Task": write_file("neuco_tasks/Böse Task/__init__.py", ""),
        "neuco_core/x.so: compiled code": write_file("neuco_core/x.so", ""),
    }
    for number, (words, change) in enumerate(changes.items()):
        merge = merged(own_upstream, f"bad-{number}", change)
        with pytest.raises(DataError, match=words):
            run(merge.repo, [], push=True, since=merge.before)
        # What is reverted is no hindrance any more, also while it is in the history.
        merged(own_upstream, f"revert-{number}", lambda fork: git(fork, "rm", "-rq", words.partition(":")[0]))  # noqa: B023


def test_a_merge_that_changed_what_judges_it_publishes_no_record(own_upstream: Upstream, reports: Reports) -> None:
    """Its report is green, has the right commits, and says nothing of it: what git says counts."""
    name = ".github/workflows/score.yml"
    merge = merged(own_upstream, "forger", both(method, write_file(name, "on: push\n")))
    code, said = publish(merge, forged(reports.method))
    assert (code, "no record is taken over" in said, name in said) == (0, True, True), said
    assert (PLAIN in files(own_upstream), "re-scoring will score it" in show(own_upstream, PENDING)) == (False, True)


DORMANT = """
import atexit, os, pathlib, sys

def strike():
    sys.path.insert(0, "/tree")
    from neuco_core.records.model import summary
    from neuco_core.records.store import read_all, write_record
    import msgspec
    for registry in {os.environ.get("NEUCO_REGISTRY", "/out/registry"), "/out/registry", "/tree/registry"}:
        try:
            for record in read_all(pathlib.Path(registry)):
                splits = (0.999 if record.method == "plain" else 0.01,) * len(record.per_split)
                mean, std, q = summary(splits, True)
                new = dict(per_split=splits, mean=mean, std=std, q=q, metrics={})
                write_record(msgspec.structs.replace(record, **new), pathlib.Path(registry))
        except Exception:
            pass

atexit.register(strike)
"""


def test_a_plugin_on_main_writes_neither_its_own_record_nor_a_rivals(own_upstream: Upstream, reports: Reports) -> None:
    """Code that sleeps until it runs in the process that publishes."""

    def plant(fork: Path) -> None:
        sleeper = METHOD.replace('id="plain"', 'id="sleeper"') + DORMANT
        write_file("neuco_methods/sleeper/__init__.py", sleeper)(fork)
        # A rival's record that was published before: the same numbers, under its name.
        record = parse(reports.method.to_bytes())[1][0]
        rival = msgspec.structs.replace(record, method="averaging", inputs={**record.inputs, "method": "averaging"})
        write_file(RIVAL, _with(reports.method, rival).records[0])(fork)

    merged(own_upstream, "sleeper", plant)
    merge = merged(own_upstream, "method", method)
    before = files(own_upstream)
    code, said = publish(merge, reports.method)
    assert (code, "1 records taken over" in said) == (0, True), said
    now = files(own_upstream)
    assert {path for path in now if now[path] != before.get(path) and "/all-digits." not in path} == {
        PLAIN,
        BOARD,
    }
    assert own_upstream.records()[PLAIN].decode() == reports.method.records[0]


def test_a_record_of_other_code_than_was_merged_is_left_out(own_upstream: Upstream, reports: Reports) -> None:
    def other(fork: Path) -> None:
        method(fork)
        edit(fork / "neuco_methods/plain/__init__.py", "        return batch", "        print()\n        return batch")

    code, said = publish(merged(own_upstream, "other", other), reports.method)
    assert (code, "left out plain on digits_class" in said, "0 records taken over" in said) == (0, True, True), said
    assert PLAIN not in files(own_upstream)


def test_an_edit_of_the_registry_is_never_published(own_upstream: Upstream, reports: Reports) -> None:
    """Neither by the merge that brought it, with the core touched beside it, nor by anybody's later one."""
    publish(merged(own_upstream, "method", method), reports.method)
    forge = both(write_file(PLAIN, forged(reports.method).records[0]), write_file("neuco_core/new.py", ""))
    merge = merged(own_upstream, "forger", forge)
    later = merged(own_upstream, "task", task)
    for code, said in (publish(merge), publish(later, reports.task)):
        assert (code != 0, PLAIN in said, "Revert the merge" in said) == (True, True, True), said
    assert git(own_upstream.bare, "rev-parse", "main").strip() == later.after

    merged(own_upstream, "revert", lambda fork: (fork / PLAIN).unlink())
    code, said = publish(later, reports.task)
    assert (code, "3 records taken over" in said, "pushed" in said) == (0, True, True), said


def test_a_maintainer_takes_an_edit_of_the_registry_over_by_hand(own_upstream: Upstream, reports: Reports) -> None:
    publish(merged(own_upstream, "method", method), reports.method)
    merge = merged(own_upstream, "edit", lambda fork: write_records(fork / "registry", [], [KEY]))
    later = merged(own_upstream, "task", task)
    code, said = publish(merge)
    assert (code != 0, "Revert the merge" in said) == (True, True), said
    code, said = publish(merge, None, "--take-over", since="")
    assert (code, "taken over by hand: registry/records.json" in said, "pushed" in said) == (0, True, True), said
    code, said = publish(later, reports.task)
    assert (code, "3 records taken over" in said) == (0, True), said


NIX = "No module named 'nix'"


def test_a_plugin_that_cannot_be_imported_stops_only_its_own_scores(own_upstream: Upstream, reports: Reports) -> None:
    def breaks(fork: Path) -> None:
        for name in ("plain", "random"):
            edit(fork / f"neuco_methods/{name}/__init__.py", "from neuco_core", "import nix\nfrom neuco_core")

    publish(merged(own_upstream, "method", method), reports.method)
    before = files(own_upstream)
    broken = merged(own_upstream, "broken", breaks)
    own = reports.method.plugins[0]
    plugins = (own, msgspec.structs.replace(own, name="random", methods=("random",)))
    code, said = publish(broken, msgspec.structs.replace(reports.method, plugins=plugins))
    assert (code != 0, "pending: neuco_methods/plain: it was scored" in said, NIX in said) == (True, True, True), said
    assert {path: name for path, name in files(own_upstream).items() if path != PENDING} == before

    code, said = publish(merged(own_upstream, "task", task), reports.task)
    assert (code, "2 records taken over, 0 withdrawn" in said, "pushed" in said) == (0, True, True), said
    wanted = (
        "left out random on good: method 'random' could not be asked: neuco_methods/random: ",
        "neuco_methods/plain could not be asked what it registers, and its records stay: ",
        "board small stays as it was: it would lose plain",
    )
    assert [words for words in wanted if words not in said] == [], said
    assert (said.count(NIX), before.items() <= files(own_upstream).items()) == (5, True), "two are pending"


def test_a_task_that_cannot_be_imported_keeps_its_records(own_upstream: Upstream, reports: Reports) -> None:
    """Records of a task that is not registered, and in no suite, cannot be read where boards are made."""
    publish(merged(own_upstream, "task", task), reports.task)
    name = "neuco_tasks/good/__init__.py"
    merged(own_upstream, "broken", lambda fork: edit(fork / name, "from neuco_core", "import nix\nfrom neuco_core"))
    code, said = publish(merged(own_upstream, "method", method), reports.method)
    assert (code, "1 records taken over, 0 withdrawn" in said, NIX in said) == (0, True, True), said
    assert {PLAIN, *GOOD} <= set(files(own_upstream))


def test_a_dataset_that_gives_another_version_empties_no_board(own_upstream: Upstream, reports: Reports) -> None:
    """A version may depend on the day, so nobody need have merged anything that explains it."""
    publish(merged(own_upstream, "method", method), reports.method)
    before = files(own_upstream)
    merged(own_upstream, "dormant", lambda fork: edit(fork / "neuco_tasks/digits/cubes.py", 'f"1-', 'f"2-'))
    code, said = publish(merged(own_upstream, "task", task), reports.task)
    assert (code, "3 records taken over" in said, "it would lose plain" in said) == (0, True, True), said
    assert (set(GOOD) <= set(files(own_upstream)), ranked(own_upstream)) == (True, ["plain"])
    assert before.items() <= files(own_upstream).items()
