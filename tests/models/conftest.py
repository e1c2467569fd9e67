"""Tests with TorchGeo, TerraTorch, timm and Hugging Face themselves: ``make test-models``.

The libraries bring 76 packages, so they have an environment of their own; elsewhere these tests are not collected.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from neuco_core.encoders import import_torchvision

LIBRARIES = ("torchgeo", "terratorch", "timm", "transformers")
HERE = all(find_spec(name) for name in LIBRARIES)
collect_ignore_glob = [] if HERE else ["test_*.py"]


if HERE:  # torchvision of another build than torch must come to life before anything imports it
    import_torchvision()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "weights.pth"
