"""TerraTorch, timm and Hugging Face: random weights through the adapters, and what docs/howto/add-method.md shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from terratorch.tasks.embedding_generation import EmbeddingGenerationTask

from neuco_core.encode.encoding import one_thread
from neuco_core.errors import DataError, PluginError, UsageError
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.testing import TinyCubes, check_encoder
from neuco_extensions.models.images import Images
from neuco_extensions.models.libraries import (
    huggingface_network,
    terratorch_bands,
    terratorch_network,
    terratorch_prefix,
    timm_network,
)
from neuco_extensions.models.network import NetworkEncoder
from neuco_methods.terratorch import make_encoder, neuco_methods

CUBES = TinyCubes(count=2, size=32)
SIX = ("s2l2a/B02", "s2l2a/B03", "s2l2a/B04", "s2l2a/B8A", "s2l2a/B11", "s2l2a/B12")
THIRTEEN = tuple(band for band in CUBES.bands if band.startswith("s2l1c/"))


def encode(network: Any, images: Any, **options: Any) -> np.ndarray:
    encoder = NetworkEncoder(lambda: network, images, **options)
    with one_thread():
        encoder.fit(CUBES)
        return encoder.encode(CUBES.read(CUBES.ids()[:1]))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # of Clay's own code
@pytest.mark.parametrize(
    ("name", "bands", "options", "size", "dim"),
    [
        ("prithvi_eo_v2_tiny_tl", SIX, {"bands": terratorch_bands(SIX), "num_frames": 1}, 224, 192),
        ("dofa_small_patch16_224", SIX, {"model_bands": terratorch_bands(SIX)}, 224, 384),
        ("timm_clay_v1_base", SIX, {}, 256, 768),
        ("ssl4eos12_resnet50_sentinel2_all_dino", THIRTEEN, {"model_bands": terratorch_bands(THIRTEEN)}, 224, 1024),
        (
            "ssl4eos12_vit_small_patch16_224_sentinel2_all_moco",
            THIRTEEN,
            {"model_bands": terratorch_bands(THIRTEEN)},
            224,
            384,
        ),
        ("timm_resnet18", SIX, {"in_chans": 6}, 224, 512),
    ],
)
def test_backbones_of_terratorch(
    name: str, bands: tuple[str, ...], options: dict[str, Any], size: int, dim: int, checkpoint: Path
) -> None:
    network = terratorch_network(name, None, **options).eval()
    torch.save(network.state_dict(), checkpoint)
    images = Images(bands, 1000.0, size=size)
    values = encode(network, images, prefix=terratorch_prefix(name))
    assert values.shape == (1, dim)
    again = terratorch_network(name, checkpoint, **options)
    assert np.array_equal(encode(again, images, prefix=terratorch_prefix(name)), values)
    torch.save(dict(list(network.state_dict().items())[:-3]), checkpoint)
    with pytest.raises(PluginError, match="missing"):  # TerraTorch itself would go on with random numbers
        terratorch_network(name, checkpoint, **options)


def test_terramind_gets_each_satellite_by_name(checkpoint: Path) -> None:
    from terratorch.models.backbones.terramind.model.terramind_register import v1_pretraining_mean, v1_pretraining_std

    post, pre = neuco_methods()
    inputs = ("untok_sen2l2a@224", "untok_sen1grd@224")
    for text, library in ((post.params["mean"], v1_pretraining_mean), (post.params["std"], v1_pretraining_std)):
        assert [float(word) for word in text.split()] == [value for name in inputs for value in library[name]]
    options = {"modalities": ["S2L2A", "S1GRD"], "merge_method": "mean"}
    network = terratorch_network("terramind_v1_tiny", None, **options).eval()
    more = {f"decoder.{name}": value for name, value in list(network.state_dict().items())[:3]}
    torch.save({**network.state_dict(), **more}, checkpoint)
    encoder = make_encoder(checkpoint=checkpoint, **{**post.params, "backbone": "terramind_v1_tiny"})
    batch = CUBES.read(CUBES.ids()[:1])
    encoder.fit(CUBES)
    values = encoder.encode(batch)
    by_modality = {}
    for name, modality, bands in (("S2L2A", "s2l2a", 12), ("S1GRD", "s1", 2)):
        mean, std = (
            torch.tensor(part["untok_sen2l2a@224" if bands == 12 else "untok_sen1grd@224"]).reshape(-1, 1, 1)
            for part in (v1_pretraining_mean, v1_pretraining_std)
        )
        images = torch.nn.functional.interpolate(
            torch.from_numpy(batch.pick(modality)[0]), (224, 224), mode="bilinear", antialias=True
        )
        by_modality[name] = (images - mean) / std
    with torch.inference_mode():
        expected = network(by_modality)[-1].mean(dim=(0, 1)).numpy()
    assert values.shape == (1, 192)
    assert np.allclose(values[0], expected, rtol=1e-4, atol=1e-5)
    assert pre.params["seasons"] == "pre"


def test_the_parameters_of_terramind_are_counted() -> None:
    method = next(neuco_methods())
    network = terratorch_network(method.params["backbone"], None, modalities=["S2L2A", "S1GRD"])
    assert sum(part.numel() for part in network.parameters()) == method.n_parameters


def test_networks_of_timm(checkpoint: Path) -> None:
    vit = timm.create_model("vit_tiny_patch16_224", in_chans=13, num_classes=5).eval()
    torch.save(vit.state_dict(), checkpoint)
    images = Images(THIRTEEN, 10_000.0)
    batch = CUBES.read(CUBES.ids()[:1])
    prepared = images.prepare(torch.from_numpy(batch.pick(*THIRTEEN)[0]))[0]
    with torch.inference_mode():
        tokens = vit.forward_features(prepared)
    for pooling, expected in (("mean", tokens[:, 1:].mean(dim=(0, 1))), ("class", tokens[:, 0].mean(dim=0))):
        values = encode(timm_network("vit_tiny_patch16_224", checkpoint, 13), images, pooling=pooling)
        assert np.allclose(values[0], expected.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(UsageError, match="timm builds no network 'resnet9'"):
        timm_network("resnet9", None, 3)

    def build() -> Any:
        torch.manual_seed(0)
        return timm_network("resnet10t", None, 13)

    small = Images(THIRTEEN, 10_000.0, view="native")
    assert check_encoder(lambda: NetworkEncoder(build, small), TinyCubes(3, size=32)).shape == (3, 512)


@pytest.mark.parametrize("kind", ["vit", "dinov2", "dinov2_with_registers"])
def test_models_of_hugging_face(kind: str, tmp_path: Path) -> None:
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModel

    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = AutoModel.from_config(AutoConfig.for_model(kind, num_channels=13, image_size=224, **size)).eval()
    config, weights = tmp_path / "config.json", tmp_path / "sha256-without-suffix"
    config.write_text(json.dumps({**model.config.to_dict(), "auto_map": {"AutoModel": "code.Model"}}))
    named = {f"{model.base_model_prefix}.{name}": value.contiguous() for name, value in model.state_dict().items()}
    save_file({**named, "classifier.weight": torch.zeros(2)}, weights)
    images = Images(THIRTEEN, 10_000.0)
    values = encode(huggingface_network(config, weights), images)
    prepared = images.prepare(torch.from_numpy(CUBES.read(CUBES.ids()[:1]).pick(*THIRTEEN)[0]))[0]
    first = 5 if kind.endswith("registers") else 1
    with torch.inference_mode():
        expected = model(prepared).last_hidden_state[:, first:].mean(dim=(0, 1))
    assert np.allclose(values[0], expected.numpy(), rtol=1e-4, atol=1e-5)
    config.write_text("{}")
    with pytest.raises(DataError, match="expected model_type"):
        huggingface_network(config, weights)


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "add-method.md"


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
        assert encoder.encode(CUBES.read(CUBES.ids()[:1])).shape == (1, 192)


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
    embeddings = read_embeddings(tmp_path)
    with torch.inference_mode():
        output = task(images)
    rows = np.stack(output[-1].numpy() if isinstance(output, list) else output.numpy())
    order = [["second", "first"].index(name) for name in embeddings.ids]
    assert sorted(embeddings.ids) == ["first", "second"]
    assert np.allclose(embeddings.values, rows[order], atol=1e-6)
