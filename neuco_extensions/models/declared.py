"""What the library of some weights declares of their inputs, beside what a network is given: a check of the contract.

TorchGeo's transforms are in our table, TerraTorch has statistics beside its networks, timm has a configuration of each.
A method names its weights as the adapters do, by a parameter: ``weights`` (TorchGeo), ``backbone`` (TerraTorch) or
``network`` (timm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from neuco_core.contract.checks.sane import declared_channels, differences
from neuco_core.contract.contract import Inapplicable, NoEvidence, Warn
from neuco_core.contract.probing import Channel
from neuco_core.contract.subjects import MethodSubject
from neuco_extensions.models.images import BANDS, joined
from neuco_extensions.models.torchgeo import table

S2 = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
TERRAMIND: Mapping[str, tuple[str, tuple[str, ...]]] = {  # by modality here: the name there, and the bands
    "s2l2a": ("untok_sen2l2a@224", tuple(band for band in S2 if band != "B10")),
    "s2l1c": ("untok_sen2l1c@224", S2),
    "s1": ("untok_sen1grd@224", ("VV", "VH")),
}
RGB = ("B04", "B03", "B02")
NAMED = ("weights", "backbone", "network")


def library(subject: MethodSubject) -> str:
    """The channels that were seen, or else those that the parameters declare, beside those of the library."""
    params = subject.spec.params
    named = [str(params[key]) for key in NAMED if params.get(key)]
    if not named:
        raise Inapplicable(f"no parameter {', '.join(NAMED)} names weights of a library")
    probes = subject.probes
    seen = probes.network.channels if probes.network else ()
    bands = tuple(probes.bands)
    got = seen if seen and all(channel.band for channel in seen) else declared_channels(params, bands)
    if not got:
        raise NoEvidence("neither the network nor the parameters tell what it is given")
    whose, wanted = library_channels(params, got, bands)
    if len(wanted) != len(got):
        raise Warn(f"{whose} declares {len(wanted)} channels, the network gets {len(got)}", where=probes.dataset)
    if doubts := list(differences(got, wanted, f"{whose} declares")):
        raise Warn("; ".join(doubts), where=probes.dataset)
    return f"{len(got)} channels as {whose} declares them for {named[0]}"


def library_channels(
    params: Mapping[str, Any], got: Sequence[Channel], bands: tuple[str, ...]
) -> tuple[str, tuple[Channel, ...]]:
    """Whose word it is, and its channels; ``NoEvidence`` if that library is not here or does not know the name."""
    if row := table().get(str(params.get("weights"))):
        facts = {"bands": joined(row.bands), "scale": row.scale, "mean": joined(row.mean), "std": joined(row.std)}
        return "TorchGeo", declared_channels(facts, bands)
    try:
        if "backbone" in params:
            return "TerraTorch", _terratorch(str(params["backbone"]), got)
        if "network" in params:
            return "timm", _timm(str(params["network"]), got)
    except ImportError as error:
        raise NoEvidence(f"the library of the weights is not here: {error}") from error
    raise NoEvidence("no library knows these weights", got=str(params.get("weights")))


def _terratorch(name: str, got: Sequence[Channel]) -> tuple[Channel, ...]:
    modality = got[0].band.partition("/")[0]
    if "terramind" in name:
        folder = "terratorch.models.backbones.terramind.model.terramind_register"
        module, (key, names) = import_module(folder), TERRAMIND[modality]
        mean, std = module.v1_pretraining_mean[key], module.v1_pretraining_std[key]
    elif "prithvi" in name:
        config = import_module("terratorch.models.backbones.prithvi_vit").prithvi_cfgs[name.removeprefix("terratorch_")]
        own = {theirs: band for band, (_, theirs) in BANDS.items()}
        names = tuple(own[str(getattr(band, "value", band))] for band in config["bands"])
        mean, std = config["mean"], config["std"]
    else:
        raise NoEvidence(f"TerraTorch has no statistics of {name}")
    order = tuple(f"{modality}/{name}" for name in names)
    return declared_channels({"bands": joined(order), "mean": joined(mean), "std": joined(std)}, order)


def _timm(name: str, got: Sequence[Channel]) -> tuple[Channel, ...]:
    """timm's networks want red, green and blue from 0 to 1; what is 1 in digital numbers is the method's choice."""
    config = import_module("timm").get_pretrained_cfg(name)
    if config is None:
        raise NoEvidence(f"timm has no configuration of {name}")
    scale = float(np.median([1 / (channel.gain * std) for channel, std in zip(got, config.std, strict=False)]))
    modality = got[0].band.partition("/")[0]
    order = tuple(f"{modality}/{band}" for band in RGB) if modality.startswith("s2") else ()
    order = order or tuple(channel.band for channel in got[:3])
    facts = {"bands": joined(order), "scale": scale, "mean": joined(config.mean), "std": joined(config.std)}
    return declared_channels(facts, order)
