"""NeuCo-Bench's own numbers: every split of every task, alone and in a run over all tasks."""

from __future__ import annotations

import pytest

from neuco_core.protocol import load_protocol
from neuco_core.scoring.probes.linear import WordStream
from neuco_core.scoring.scorer import score
from tests.scoring.parity import ALONE, WHOLE, agree, make_case

PROTOCOL = load_protocol("neuco-2025").with_(k=8, epochs=12, lr=0.01)


@pytest.mark.parametrize("name", ALONE)
def test_each_task_alone(name: str) -> None:
    embeddings, labels = make_case()
    alone = score(embeddings, labels[name], PROTOCOL)
    agree(list(alone.per_split), alone.q, ALONE[name])
    assert alone.mean == pytest.approx(ALONE[name]["mean"], abs=2e-4)


def test_whole_run_with_one_stream() -> None:
    embeddings, labels = make_case()
    labelled = {sample for task in labels.values() for sample in task.ids}
    stream, words = WordStream(PROTOCOL.seed), 0
    for name in sorted(labels):
        one = score(embeddings, labels[name], PROTOCOL, stream=stream, standardize_ids=labelled)
        agree(list(one.per_split), one.q, WHOLE[name])
        assert one.mean == pytest.approx(WHOLE[name]["mean"], abs=2e-4)
        words += one.words
        assert stream.position == words


def test_the_stream_of_a_whole_run_is_not_that_of_a_single_task() -> None:
    """The two sets of numbers differ, so the tests above can tell one stream from another."""
    assert abs(WHOLE["delta"]["q"] - ALONE["delta"]["q"]) > 5
