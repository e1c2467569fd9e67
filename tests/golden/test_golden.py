"""Whoever changes numbers without raising a version gets a failing test that says so."""

from __future__ import annotations

import json

import pytest

from tests.golden.numbers import FILE, components, problem

GOLDEN = json.loads(FILE.read_text())


@pytest.mark.parametrize(("name", "version"), components().items())
def test_a_component_gives_the_numbers_of_its_version(name: str, version: int) -> None:
    assert problem(name, version, GOLDEN) == ""


def test_every_metric_probe_and_splitter_that_ships_is_versioned() -> None:
    from neuco_core import builtin

    specs = [*builtin.neuco_metrics(), *builtin.neuco_probes(), *builtin.neuco_splitters()]
    targets = [getattr(spec, "factory", None) or spec.function for spec in specs]  # type: ignore[union-attr]
    assert {str(target).partition(":")[2] for target in targets} <= components().keys()


def test_numbers_of_a_version_are_never_taken_back() -> None:
    """Each component has numbers for every version up to the present one."""
    for name, version in components().items():
        assert [int(number) for number in GOLDEN[name]] == list(range(1, version + 1))
