"""NeuCo-Bench's own numbers: every split of every task, alone and in a run over all tasks."""

from __future__ import annotations

import pytest

from neuco_core.protocol import load_protocol
from neuco_core.scoring.scorer import Score, score
from neuco_core.scoring.stream import WordStream
from tests.scoring.parity import EXPECTED, make_case

PROTOCOL = load_protocol("neuco-2025").with_(k=8, epochs=12, lr=0.01)


def agree(got: Score, expected: dict[str, object]) -> None:
    assert got.per_split == pytest.approx(expected["per_split"], abs=2e-4)
    assert got.q == pytest.approx(expected["q"], abs=1e-2, rel=1e-3)
    assert got.mean == pytest.approx(expected["mean"], abs=2e-4)


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "delta"])
def test_each_task_alone(name: str) -> None:
    embeddings, labels = make_case()
    agree(score(embeddings, labels[name], PROTOCOL), EXPECTED["single_task"][name])


def test_whole_run_with_one_stream() -> None:
    embeddings, labels = make_case()
    kept = {name for task in labels.values() for name in task.ids}
    stream, words = WordStream(PROTOCOL.seed), 0
    for name in sorted(labels):
        got = score(embeddings, labels[name], PROTOCOL, stream=stream, standardize_ids=kept)
        agree(got, EXPECTED["whole_run"][name])
        words += got.words
        assert stream.position == words
