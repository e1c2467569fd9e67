"""What every error means for a cell, and what a record keeps of its score."""

from __future__ import annotations

import errno

import pytest

from neuco_core.errors import (
    DataError,
    DependencyError,
    NotApplicableError,
    OfflineError,
    PluginError,
    UnpinnedError,
)
from neuco_core.runs.messages import Scored
from neuco_core.runs.worker import result_of
from neuco_core.scoring.cell import outcome_of, score_cell
from neuco_core.scoring.scorer import score
from neuco_core.specs import Metric
from tests.scoring.make import label, problem

EMBEDDINGS, SIGNAL = problem(n=40)
LABELS = label(SIGNAL[:, 0])


def caused_by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status", "failure"),
    [
        (UnpinnedError("no sha256"), "skipped", ""),
        (OfflineError("no network"), "skipped", ""),
        (OSError(errno.ENOSPC, "disk full"), "skipped", ""),
        (caused_by(DataError("cannot write"), PermissionError(errno.EACCES, "denied")), "skipped", ""),
        (caused_by(PluginError("disk of theirs"), OSError(errno.ENOSPC, "full")), "skipped", ""),
        (caused_by(PluginError("it failed"), PermissionError(errno.EACCES, "denied")), "failed", "method"),
        (MemoryError(), "failed", "memory"),
        (ModuleNotFoundError("no timm"), "failed", "dependency"),
        (DependencyError("no timm"), "failed", "dependency"),
        (DataError("no id in common"), "failed", "data"),
        (NotApplicableError("no classes"), "not-applicable", ""),
    ],
)
def test_an_error_has_one_meaning(error: Exception, status: str, failure: str) -> None:
    outcome = outcome_of(error)
    assert (outcome.status, outcome.failure) == (status, failure)
    assert outcome.machine == ("disk" in str(error) or "write" in str(error))
    with pytest.raises(type(error)):
        outcome.require()


def test_the_fault_of_strangers_code_names_its_line() -> None:
    def broken(truth: object, prediction: object) -> float:
        raise ZeroDivisionError("of theirs")

    metric = Metric(id="theirs", function=broken, kinds=("regression",))
    outcome = score_cell(EMBEDDINGS, LABELS, "ridge", metric=metric)
    assert outcome.failure == "method"
    assert "ZeroDivisionError: of theirs (test_cell.py:" in outcome.reason


def test_an_outcome_has_the_score_and_what_a_record_keeps_of_it() -> None:
    outcome = score_cell(EMBEDDINGS, LABELS, "svm+k=2", metric="mae", threads=1)
    assert outcome.require() == score(EMBEDDINGS, LABELS, "svm+k=2", metric="mae")
    kept = result_of(outcome)
    assert isinstance(kept, Scored)
    assert (kept.labels, kept.embeddings) == (LABELS.sha256, EMBEDDINGS.sha256)
    assert kept.per_split == outcome.require().per_split
    assert set(kept.metrics) == {"r2", "mse"}
    assert set(kept.settings) == {"C", "degree"}, "what the probe's own search chose"


@pytest.mark.parametrize("protocol", ["logistic", "retrieval", "clustering"])
def test_a_protocol_that_makes_no_sense_for_a_regression_is_no_failure(protocol: str) -> None:
    outcome = score_cell(EMBEDDINGS, LABELS, protocol)
    assert (outcome.status, outcome.failure) == ("not-applicable", "")
    assert f"probe {protocol!r} is not for regression; expected" in outcome.reason
