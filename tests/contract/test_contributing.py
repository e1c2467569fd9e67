"""CONTRIBUTING.md is a walk that a newcomer can take: every command in it is run, in a clone, in its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core import load_dataset
from tests import console
from tests.ci.helpers import WHO, Upstream, edit, fresh_cache, git, take_kernels
from tests.command import neuco


def write_labels(folder: Path) -> None:
    """What the newcomer brings: the share of dark pixels of each digit, and another file like it."""
    dataset = load_dataset("digits")
    assert dataset.cubes is not None
    source = dataset.cubes()
    ids = source.ids()
    ink = (source.read(ids).values > 8).mean(axis=(1, 2, 3, 4))
    rows = [f"{sample},{value:.5f}" for sample, value in zip(ids, ink, strict=True)]
    (folder / "ink.csv").write_text("\n".join(["id,label", *rows, ""]))


def as_shipped(tree: Path) -> None:
    """The page names the dataset's own protocol."""
    edit(tree / "neuco_tasks/digits/__init__.py", 'protocol="ridge+k=4"', 'protocol="ridge"')


@pytest.mark.extensions  # the clone is of the whole tree
def test_a_newcomer_gets_from_labels_to_a_green_report(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEUCO_REGISTRY")  # the registry is the checkout's
    fork = Upstream(tmp_path / "upstream", more=as_shipped).clone("mine")
    take_kernels(fork)
    write_labels(fork)
    environment = {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(fork),
        "NEUCO_CACHE": fresh_cache(tmp_path / "cache"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **WHO,
    }
    steps = console.steps((root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    before_commit = [step.command for step in steps].index("git add neuco_tasks/ink")
    assert before_commit < 10, "a task takes fewer than ten commands"
    for step in steps:
        done = console.run(step, fork, environment)
        assert done.returncode == 0, f"{step.command}:\n{done.stdout}"
        assert console.matches(step.expected, done.stdout), f"{step.command}:\n{done.stdout}"
    # Only main writes records: nothing to commit by mistake, and nothing that a later pull from main would meet.
    assert "registry" not in git(fork, "status", "--porcelain", "--untracked-files=all")
    assert (fork / ".neuco/records/averaging.jsonl").is_file()
    # The branch is left with the records that it made: the boards of main go on.
    git(fork, "switch", "--quiet", "main")
    done = neuco("leaderboard", "show", "all-digits", cwd=fork, env=environment)
    assert (done.code, "left out, not registered here: " in done.err) == (0, True)
    assert "of task 'ink' (of plugin ink), not registered here" in neuco("doctor", cwd=fork, env=environment).out
