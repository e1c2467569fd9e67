"""The contract of the position baseline; tests/content/test_shipped.py looks at its numbers, which need olinda."""

from __future__ import annotations

from neuco_core.testing import contract

test_contract = contract("method", "position")
