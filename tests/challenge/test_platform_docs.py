"""docs/challenge-platforms.md does what it says, with a server in EvalAI's place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from neuco_extensions.challenge.journal import MESSAGES
from neuco_extensions.challenge.rules import load_challenge
from tests import console
from tests.challenge.evalai_server import TOKEN, EvalAI

PAGE = Path(__file__).parents[2] / "docs" / "challenge-platforms.md"


def submit_two(server: EvalAI, folder: Path) -> None:
    """One file with the ids of the challenge, and one with some of them."""
    ids = load_challenge(folder / "ours").ids("dev")
    values = np.random.default_rng(0).normal(size=(len(ids), 4))
    for number, count in ((1, len(ids)), (2, 5)):
        write_embeddings(make_embeddings(ids[:count], values[:count]), folder / "a.csv")
        server.submit(number, (folder / "a.csv").read_bytes())
        server.submissions[number]["submitted_at"] = "2025-01-10T12:00:00Z"


@pytest.mark.slow
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    rules = tmp_path / "ours" / "challenge.toml"
    with EvalAI(visibility=60.0) as server:
        settings = {"EVALAI_TOKEN": TOKEN, "EVALAI_SERVER": server.url}
        for step in console.steps(PAGE.read_text(encoding="utf-8")):
            if " seal " in step.command:  # nobody wants to wait for a whole minute here
                rules.write_text(rules.read_text().replace("tick = 60", "tick = 3"))
            if " worker " in step.command:
                submit_two(server, tmp_path)
            done = console.run(step, tmp_path, settings)
            assert done.returncode == 0, done.stdout
            assert console.matches(step.expected, done.stdout), f"{step.command}\n{done.stdout}"
        assert (server.status(1), server.status(2)) == ("finished", "failed")
        assert server.submissions[2]["stderr"] == MESSAGES["ids"]
