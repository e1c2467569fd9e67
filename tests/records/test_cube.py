"""Records as an array."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core.errors import UsageError
from neuco_core.records.cube import score_cube
from tests.records.examples import scored, unscored


def test_scores_by_method_task_and_split() -> None:
    one, two = scored("b", "digits_class", seed=1), scored("a", "digits_other", seed=2, k=3)
    cube = score_cube([one, two, unscored()])
    assert cube.sizes == {"method": 2, "task": 2, "split": 5}
    assert cube.sel({"method": "b", "task": "digits_class"}).values.tolist() == list(one.per_split)
    assert np.isnan(cube.sel({"method": "b", "task": "digits_other"})).all()
    assert int(cube.sel({"method": "a", "task": "digits_other"}).count()) == 3
    assert cube.sel(task="digits_class").metric.item() == "f1"


def test_no_scores_is_said() -> None:
    with pytest.raises(UsageError, match="no scores under the protocol 'ridge'"):
        score_cube([scored()], "ridge")
