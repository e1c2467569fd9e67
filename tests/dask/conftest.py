"""The small world of plugins, as for local runs."""

from tests.runs.conftest import world  # noqa: F401 - a fixture
