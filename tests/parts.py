"""Parts that a machine may lack: a browser, a package index. CI has them all, so there their absence is a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(part: str, reason: str, detail: str = "") -> NoReturn:
    """Skip a test for want of a part of the machine; with ``CI=true`` fail it."""
    text = f"{part}: {reason} {detail[-500:]}".strip()
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing with CI=true: {text}")
    # Justified: without this part the test cannot say anything, and CI runs it.
    pytest.skip(text)
