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

S2 = tuple(band for band in BANDS if band.startswith("B"))
TERRAMIND: Mapping[str, tuple[str, tuple[str, ...]]] = {  # by modality here: the name there, and the bands
    "s2l2a": ("untok_sen2l2a@224", tuple(band for band in S2 if band != "B10")),
    "s2l1c": ("untok_sen2l1c@224", S2),
    "s1": ("untok_sen1grd@224", ("VV", "VH")),
}
RGB = ("B04", "B03", "B02")


def library(subject: MethodSubject) -> str:
    """The channels that were seen, or else those that the parameters declare, beside those of the library."""
    params = subject.spec.params
    named = [str(params[key]) for key in ("weights", "backbone", "network") if params.get(key)]
    if not named:
        raise Inapplicable("no parameter weights, backbone or network names weights of a library")
    probes = subject.probes
    seen = probes.network.channels if probes.network else None
    got = seen or declared_channels(params, probes.bands)
    if not got:
        raise NoEvidence("neither the network nor the parameters tell what it is given")
    try:
        whose, facts, order = library_facts(params, got, probes.bands)
    except ImportError as error:
        raise NoEvidence(f"the library of the weights is not here: {error}") from error
    wanted = declared_channels(facts, order)
    if len(wanted) != len(got):
        raise Warn(f"{whose} declares {len(wanted)} channels, the network gets {len(got)}", where=probes.dataset)
    if doubts := list(differences(got, wanted, f"{whose} declares")):
        raise Warn("; ".join(doubts), where=probes.dataset)
    return f"{len(got)} channels as {whose} declares them for {named[0]}"


def library_facts(
    params: Mapping[str, Any], got: Sequence[Channel], known: tuple[str, ...]
) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Whose word it is, the parameters as that library has them, and the bands in its order."""
    if row := table().get(str(params.get("weights"))):
        return "TorchGeo", row.params(), known
    name = str(params.get("backbone") or params.get("network"))
    modalities = list(dict.fromkeys(channel.band.partition("/")[0] for channel in got))
    whose, scale = "TerraTorch", 1.0
    mean: Sequence[float]
    std: Sequence[float]
    if "backbone" in params and "terramind" in name:
        statistics = import_module("terratorch.models.backbones.terramind.model.terramind_register")
        inputs = [TERRAMIND[modality][0] for modality in modalities]
        mean = [value for key in inputs for value in statistics.v1_pretraining_mean[key]]
        std = [value for key in inputs for value in statistics.v1_pretraining_std[key]]
        order = [f"{modality}/{band}" for modality in modalities for band in TERRAMIND[modality][1]]
    elif "backbone" in params and "prithvi" in name:
        config = import_module("terratorch.models.backbones.prithvi_vit").prithvi_cfgs[name.removeprefix("terratorch_")]
        own = {theirs: band for band, (_, theirs) in BANDS.items()}
        mean, std = config["mean"], config["std"]
        order = [f"{modalities[0]}/{own[str(getattr(band, 'value', band))]}" for band in config["bands"]]
    elif "network" in params and (config := import_module("timm").get_pretrained_cfg(name)):
        # timm's networks want red, green and blue from 0 to 1; what is 1 in digital numbers is the method's choice.
        whose, mean, std = "timm", config.mean, config.std
        scale = float(np.median([1 / (channel.gain * part) for channel, part in zip(got, std, strict=False)]))
        colours = modalities[0].startswith("s2")
        order = [f"{modalities[0]}/{band}" for band in RGB] if colours else [channel.band for channel in got[:3]]
    else:
        raise NoEvidence("no library has statistics of these weights", got=name)
    facts = {"bands": joined(order), "scale": scale, "mean": joined(mean), "std": joined(std)}
    return whose, facts, tuple(order)
