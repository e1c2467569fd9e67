"""TerraMind's inputs: which bands go where, and with which statistics. ``tests/models`` runs the network itself."""

from __future__ import annotations

import pytest

from neuco_core.encode.encoding import make_encoder as make
from neuco_core.errors import UnpinnedError, UsageError
from neuco_extensions.models.images import numbers, words
from neuco_methods.terratorch import neuco_methods
from neuco_methods.terratorch.encoder import inputs


def test_each_satellite_is_an_input_of_its_own() -> None:
    params = next(neuco_methods()).params
    bands, mean, std = words(params["bands"]), numbers(params["mean"], "mean"), numbers(params["std"], "std")
    found = inputs(bands, mean, std, 1000.0, 224, "whole")
    assert list(found) == ["S2L2A", "S1GRD"]
    assert [len(part.bands) for part in found.values()] == [12, 2]
    assert (found["S2L2A"].offset, found["S1GRD"].offset) == (1000.0, 0.0)
    assert (found["S1GRD"].mean, found["S1GRD"].std) == ((-12.599, -20.293), (5.195, 5.89))
    assert found["S2L2A"].mean[0] == 1390.458


def test_statistics_for_other_bands_are_refused() -> None:
    with pytest.raises(UsageError, match="2 bands, 1 means"):
        inputs(("s1/VV", "s1/VH"), (0.0,), (1.0, 1.0), 0.0, 224, "whole")
    with pytest.raises(UsageError, match="bands of s2l2a"):
        inputs(("etm/B1",), (0.0,), (1.0,), 0.0, 224, "whole")


def test_weights_that_nobody_has_verified_say_what_to_do() -> None:
    for method in neuco_methods():
        with pytest.raises(UnpinnedError, match=f"neuco data pin --method {method.id.removesuffix('_pre')}`"):
            make(method, dict(method.params))
