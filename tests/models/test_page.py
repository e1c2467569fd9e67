"""The examples for libraries in docs/encoders.md are run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import timm
import torch

from neuco_core.testing import TinyCubes
from neuco_extensions.models.libraries import terratorch_network

PAGE = Path(__file__).parents[2] / "docs" / "encoders.md"
CUBES = TinyCubes(count=1, size=32)


def test_the_examples_of_the_page_encode(checkpoint: Path) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert len(blocks) == 4
    assert [method.id for method in names["neuco_methods"]()] == ["mae_base", "moco_radar"]
    networks = {
        "timm_vit": timm.create_model("vit_tiny_patch16_224", num_classes=10),
        "prithvi": terratorch_network("prithvi_eo_v2_tiny_tl", None, num_frames=1),
    }
    for name, network in networks.items():
        torch.save(network.state_dict(), checkpoint)
        encoder = names[name](checkpoint)
        encoder.fit(CUBES)
        assert encoder.encode(CUBES.read(CUBES.ids())).shape == (1, 192)
