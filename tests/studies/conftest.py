"""The parity case and its tasks, shared with the tests of NeuCo-Bench's ways."""

from tests.bench.conftest import case, parity_tasks, private_folders, site

__all__ = ["case", "parity_tasks", "private_folders", "site"]
