"""Plugins that tests install; one thread of linear algebra, as the scorer has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

from tests.plugins.conftest import tree

__all__ = ["tree"]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield
