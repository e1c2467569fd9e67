"""Networks of timm, Hugging Face and TerraTorch with weights from a verified file; the libraries download nothing.

Each function gives a module for ``NetworkEncoder``. All of them build the network by the library and set its weights
here, since the libraries leave parts of a network random if a file lacks them, with a warning at most.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuco_core.errors import DataError, UsageError
from neuco_extensions.models.images import BANDS
from neuco_extensions.models.state import load_state, read_state

# Tokens before those of patches, which TerraTorch's networks do not tell.
TERRATORCH_PREFIX: Mapping[str, int] = {"terramind": 0, "prithvi": 1, "dofa": 1, "clay": 1}
MADE = ("dofa_model.fc_norm.", "dofa_model.head.")  # of DOFA: made when it is used, and not in its file


def timm_network(name: str, checkpoint: Path | None, channels: int, *, drop: Sequence[str] = (), **options: Any) -> Any:
    """A network of timm without its classifier, e.g. ``vit_small_patch16_224``; without a file it is random."""
    from neuco_core.encoders import import_torchvision

    import_torchvision()
    import timm  # type: ignore[import-not-found]

    try:
        model = timm.create_model(name, pretrained=False, in_chans=channels, num_classes=0, **options)
    except RuntimeError as error:
        raise UsageError(f"timm builds no network {name!r}: {error}", hint="See timm.list_models()") from error
    if checkpoint is None:
        return model
    heads = tuple(f"{part}." for part in model.default_cfg.get("classifier", "head").split())
    return load_state(model, read_state(checkpoint), drop=(*heads, *drop), where=f"{name}, {checkpoint}")


def huggingface_network(config: Path, checkpoint: Path | None, *, drop: Sequence[str] = ()) -> Any:
    """The model of a ``config.json`` with the weights of a ``model.safetensors``; no code of a repository is run."""
    from transformers import AutoConfig, AutoModel  # type: ignore[import-not-found]

    try:
        fields = json.loads(config.read_text(encoding="utf-8"))
        kind = fields.pop("model_type")
    except (OSError, ValueError, KeyError) as error:
        raise DataError("not the configuration of a Hugging Face model", where=config, expected="model_type") from error
    fields.pop("auto_map", None)  # which names code in the repository
    model = AutoModel.from_config(AutoConfig.for_model(kind, **fields))
    if checkpoint is None:
        return model
    state = read_state(checkpoint)
    prefix = f"{model.base_model_prefix}."
    if any(name.startswith(prefix) for name in state):  # saved with a head for some task
        state = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    return load_state(model, state, drop=drop, optional=("pooler.",), where=f"{kind}, {checkpoint}")


def terratorch_network(name: str, checkpoint: Path | None, **options: Any) -> Any:
    """A backbone of TerraTorch's registry, e.g. ``terramind_v1_base`` with ``modalities=["S2L2A"]``."""
    from neuco_core.encoders import import_torchvision

    import_torchvision()
    from terratorch.registry import BACKBONE_REGISTRY  # type: ignore[import-not-found]

    if name not in BACKBONE_REGISTRY:
        raise UsageError(f"TerraTorch has no backbone {name!r}", hint="See terratorch.registry.BACKBONE_REGISTRY")
    model = BACKBONE_REGISTRY.build(name, pretrained=False, **options)
    if checkpoint is None:
        return model
    state = _as_named(model, read_state(checkpoint))
    made = MADE if hasattr(model, "dofa_model") else ()
    return load_state(model, state, optional=made, surplus=True, where=f"{name}, {checkpoint}")


def _as_named(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Weights under the names that the backbone has for them: TerraTorch wraps networks, and drops decoders."""
    if type(model).__name__ == "PrithviViT":
        from terratorch.models.backbones.prithvi_vit import checkpoint_filter_fn_vit  # type: ignore[import-not-found]

        return dict(checkpoint_filter_fn_vit(state, model, model.pretrained_bands, model.model_bands))
    if any("clay_encoder." in name for name in model.state_dict()):
        start = next(name for name in model.state_dict() if "clay_encoder." in name).partition("clay_encoder.")[0]
        return {name.replace("model.encoder.", f"{start}clay_encoder.", 1): value for name, value in state.items()}
    wrapped = next(iter(model.state_dict())).partition(".")[0] + "."
    if type(model).__name__.endswith("Wrapper") and not any(name.startswith(wrapped) for name in state):
        return {wrapped + name: value for name, value in state.items()}
    return state


def terratorch_prefix(name: str) -> int | None:
    """How many tokens of a backbone come before those of patches; None if its features are maps or nobody knows."""
    plain = name.removeprefix("terratorch_").removeprefix("timm_")
    return next((count for kind, count in TERRATORCH_PREFIX.items() if plain.startswith(kind)), None)


def terratorch_bands(bands: Sequence[str]) -> list[str]:
    """Bands as ``s2l2a/B04`` under the names that TerraTorch has for them."""
    names = [band.rpartition("/")[2] for band in bands]
    unknown = [name for name in names if name not in BANDS]
    if unknown:
        raise UsageError("no band of Sentinel-1 or -2", expected=", ".join(BANDS), got=unknown[0])
    return [BANDS[name][1] for name in names]
