"""``import neuco`` gives the public names, and imports what is behind them when it is used."""

from __future__ import annotations

import pytest

import neuco
import neuco_core
from tests.command import python


def test_neuco_has_the_public_names_of_the_core() -> None:
    assert neuco.__all__ == neuco_core.__all__
    assert all(getattr(neuco, name) is getattr(neuco_core, name) for name in neuco.__all__)
    assert {*neuco.__all__, "__version__"} <= set(dir(neuco))
    assert neuco.__version__ == neuco_core.__version__


def test_neuco_has_no_other_name() -> None:
    with pytest.raises(AttributeError, match="module 'neuco' has no attribute 'load_taks'"):
        _ = neuco.load_taks  # type: ignore[attr-defined]


def test_importing_neuco_imports_nothing_heavy() -> None:
    done = python("-c", "import neuco, sys; print([m for m in ('numpy', 'click', 'pluggy') if m in sys.modules])")
    assert done.out == "[]\n"
