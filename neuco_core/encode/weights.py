"""Weights of an encoder: verified files that it is given by name, as paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuco_core.specs import Method


def weight_files(method: Method) -> dict[str, Path]:
    """The method's weights by name, fetched and verified; one that nobody has verified is an error that says so."""
    from neuco_core.fetch.fetch import fetch

    return {name: fetch(remote) for name, remote in method.weights.items()}


def weight_hashes(method: Method) -> dict[str, str]:
    """Which bytes the weights are, without fetching them; empty for a method that has none."""
    from neuco_core.fetch.pins import require_pin

    return {name: require_pin(remote).sha256 for name, remote in method.weights.items()}
