"""New versions of a task, a method and the scorer, merged and published: boards keep their methods, and their past."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.report import Report, parse
from tests.ci.helpers import Upstream, ci, git
from tests.ci.prs import edit
from tests.ci.test_sandbox import need_bubblewrap
from tests.command import python

AVERAGING, DIGITS = "neuco_methods/averaging/__init__.py", "neuco_tasks/digits/__init__.py"
SECOND = """
@hookimpl
def neuco_tasks() -> Iterator[Task]:
    from dataclasses import replace

    (first,) = _first()
    yield first
    yield replace(first, version=2, description="The digit, by another reader")


def _first() -> Iterator[Task]:
"""


class Loop:
    """Merge, score on main as the workflow does, publish; and look at what main has then."""

    def __init__(self, folder: Path) -> None:
        self.upstream = Upstream(folder)
        self.number = 0

    def propose(self, *edits: tuple[str, str, str]) -> tuple[Path, Report]:
        fork = self.fork(*edits)
        return fork, self._judge(self.upstream.base, fork)

    def fork(self, *edits: tuple[str, str, str]) -> Path:
        self.number += 1

        def change(fork: Path) -> None:
            for path, old, new in edits:
                edit(fork / path, old, new)

        git(self.upstream.base, "pull", "--quiet", "--ff-only", "origin", "main")
        return self.upstream.pull_request(f"change-{self.number}", change)

    def merge(self, fork: Path) -> str:
        """What publishing said."""
        before = git(self.upstream.bare, "rev-parse", "main").strip()
        base = self.upstream.clone(f"judge-{self.number}")
        self.upstream.merge(fork)
        after = self.upstream.clone(f"after-{self.number}")
        report = self._judge(base, after, "--since", before, "--merged")
        assert report.green, report.findings
        path = self.upstream.folder / "report.json"
        done = ci(after, "publish", "--repo", str(after), "--report", str(path), "--since", before, "--push")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _judge(self, base: Path, head: Path, *options: str) -> Report:
        path = self.upstream.folder / "report.json"
        ci(base, "score-pr", "--head", str(head), "--out", str(path), "--seconds", "300", *options)
        return parse(path.read_bytes())[0]

    def show(self, path: str) -> str:
        return git(self.upstream.bare, "show", f"main:{path}")

    def results(self) -> dict[str, bytes]:
        return {path.removeprefix("registry/results/"): data for path, data in self.upstream.records().items()}

    def board(self) -> dict[str, tuple[int, int]]:
        """Rank and version of every method that is ranked, or is the copy of one."""
        rows = json.loads(self.show("registry/leaderboards/small.json"))["rows"]
        return {row["method"]: (row["rank"], row["version"]) for row in rows if row["rank"] or row["same_as"]}


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    """A board with the shipped methods: touched once, they are scored."""
    need_bubblewrap()
    loop = Loop(tmp_path_factory.mktemp("versions"))
    fork = loop.fork(
        (AVERAGING, '"Averaging baseline"', '"Averaging"'),
        ("neuco_methods/random/__init__.py", 'title="', 'title="The '),
    )
    loop.merge(fork)
    return loop


def test_every_version_has_its_own_place_and_no_board_is_emptied(loop: Loop) -> None:
    start, board = loop.results(), loop.board()
    assert set(board) == {"averaging", "averaging_notebook", "random"}

    # A task: replacing the version that a suite compares is refused; beside it, both are there and both are scored.
    _, report = loop.propose((DIGITS, 'id="digits_class",', 'id="digits_class",\n        version=2,'))
    said = [finding.detail for finding in report.findings if finding.check == "suites"]
    assert (report.green, said) == (False, ["it compares version 1 of task 'digits_class'; there is version 2"])
    fork, report = loop.propose((DIGITS, "@hookimpl\ndef neuco_tasks() -> Iterator[Task]:\n", SECOND.lstrip("\n")))
    assert report.green, report.findings
    loop.merge(fork)
    assert start.items() <= loop.results().items()
    assert "averaging/digits_class.2@ridge+k=4.json" in loop.results()
    assert loop.board() == board

    # A method: its new version takes the place of the old one on the board, not of its records.
    fork, report = loop.propose(
        (AVERAGING, "            id=name,", "            id=name,\n            version=2,"),
        (AVERAGING, '"size": 8}', '"size": 7}'),
    )
    assert report.green, report.findings
    loop.merge(fork)
    assert start.items() <= loop.results().items()
    assert {name: version for name, (_, version) in loop.board().items()} == {
        "averaging": 2, "averaging_notebook": 2, "random": 1,
    }  # fmt: skip

    # The scorer: every record is outdated at once, and the board stays until there are new ones.
    board = loop.board()
    fork = loop.fork(("neuco_core/scoring/scorer.py", "@versioned(1)\ndef score(", "@versioned(2)\ndef score("))
    assert "would lose averaging" in loop.merge(fork)
    assert loop.board() == board
    asked = (
        "from neuco_core import load_task as load; print(load('digits_class@1').version, load('digits_class').version)"
    )
    assert python("-c", asked, cwd=loop.upstream.clone("reader")).out.split() == ["1", "2"]
