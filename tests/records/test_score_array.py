"""Records as an array."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core.errors import UsageError
from neuco_core.records.score_array import score_array
from tests.records.examples import scored, unscored


def test_scores_by_method_task_and_split() -> None:
    one, two = scored("b", "digits_class", seed=1), scored("a", "digits_other", seed=2, k=3)
    scores = score_array([one, two, unscored()])
    assert scores.sizes == {"method": 2, "task": 2, "split": 5}
    assert scores.sel({"method": "b", "task": "digits_class"}).values.tolist() == list(one.per_split)
    assert np.isnan(scores.sel({"method": "b", "task": "digits_other"})).all()
    assert int(scores.sel({"method": "a", "task": "digits_other"}).count()) == 3
    assert scores.sel(task="digits_class").metric.item() == "f1"


def test_no_scores_is_said() -> None:
    with pytest.raises(UsageError, match="no scores under the protocol 'ridge'"):
        score_array([scored()], "ridge")
