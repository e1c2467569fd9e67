"""Tasks of a small case whose numbers NeuCo-Bench's own program gave."""

from __future__ import annotations

from tests.bench.conftest import case, parity_tasks, site

__all__ = ["case", "parity_tasks", "site"]
