"""Files that TerraTorch's own embedding task writes are read as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from terratorch.tasks.embedding_generation import EmbeddingGenerationTask

from neuco_core.tables.embeddings import read_embeddings

NAMES = ["second.zarr.zip", "first.zarr.zip"]


@pytest.mark.filterwarnings("ignore")  # those of TerraTorch
@pytest.mark.parametrize("kind", ["neuco_csv", "parquet", "parquet_joint"])
def test_what_terratorch_writes_is_read(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    task = EmbeddingGenerationTask(
        model_args={"backbone": "timm_resnet10t", "backbone_pretrained": False, "backbone_in_chans": 3},
        output_dir=str(tmp_path),
        output_format=kind,
        embedding_pooling="mean",
    )
    task.configure_models()
    task.eval()
    images = torch.rand(2, 3, 64, 64)
    task.predict_step({"image": images, "filename": list(NAMES)})
    task.on_predict_end()
    found = read_embeddings(tmp_path)
    with torch.inference_mode():
        output = task(images)
    rows = np.stack(output[-1].numpy() if isinstance(output, list) else output.numpy())
    order = [["second", "first"].index(name) for name in found.ids]
    assert sorted(found.ids) == ["first", "second"]
    assert np.allclose(found.values, rows[order], atol=1e-6)
