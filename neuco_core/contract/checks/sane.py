"""Whether a method is what it claims to be: its embeddings look healthy, its network is used as it was meant to be.

A network gives numbers for anything, and a wrong wrapper costs points that nobody sees. None of these checks needs
labels. They warn: only output that is the same for every image cannot be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn
from neuco_core.contract.probing import Channel, Probes
from neuco_core.contract.sanity import SAME, SEASONS, measured, unusual
from neuco_core.contract.subjects import MethodSubject
from neuco_core.env import registry_dir
from neuco_core.errors import NeucoError
from neuco_core.records.model import Record
from neuco_core.records.store import read_all
from neuco_core.text import join_names

MOST_ROWS, BESIDE = 512, 128  # of a file, and beside its images
FRESH = 0.4  # of the layers that normalise; weights that were loaded leave at most one as it was
# What a network is given: of `python -P benchmarks/sane.py tune` right ones have a spread of 0.088 to 1.5, and means
# of up to 1.7 spreads; radar in dB without statistics, as TorchGeo's CLOSP wants it, comes to 6.
SMALLEST, LARGEST, FARTHEST = 0.005, 8.0, 8.0
CLOSE = 0.02  # relative, of a gain
MEANS = {"post": "mean", "pre": "mean", "concat": "concat"}  # of a parameter ``seasons``


def sane(subject: MethodSubject) -> str:
    if not subject.spec.sees_images:
        dataset, measures, refused = *_of_file(subject), {}
    else:
        probes = subject.probes
        dataset, measures, refused = probes.dataset, probes.measures, probes.refused
    if measures["relative spread"] < SAME:
        raise Broken("every sample has the same row", where=dataset, got=f"spread {measures['relative spread']:.2g}")
    doubts = [*unusual(measures), *_seasons(subject, measures)]
    doubts += [f"images with the change {kind!r} cannot be encoded: {why}" for kind, why in refused.items()]
    if doubts:
        raise Warn("; ".join(doubts), where=dataset)
    named = ("effective rank", "intrinsic dimension", "agreement", "agreement of many")
    return f"{dataset}: " + ", ".join(f"{name} {measures[name]:.3g}" for name in named if name in measures)


def _of_file(subject: MethodSubject) -> tuple[str, dict[str, float]]:
    """The measures of a file; beside plain statistics of a few images, where the dataset's images are here."""
    dataset, embeddings = next(iter(subject.embeddings.items()))
    values = embeddings.values
    measures = measured(values[np.linspace(0, len(values) - 1, min(MOST_ROWS, len(values))).astype(int)])
    rows = np.linspace(0, len(values) - 1, min(BESIDE, len(values))).astype(int)
    try:
        plain = subject.plain(dataset, tuple(embeddings.ids[row] for row in rows))
    except NeucoError:
        return dataset, measures
    place = {name: row for row, name in enumerate(embeddings.ids)}
    few = measured(values[[place[name] for name in plain.ids]], plain.values)
    return dataset, measures | {name: few[name] for name in few if name not in measures}


def _seasons(subject: MethodSubject, measures: Mapping[str, float]) -> Iterator[str]:
    """A method that says what it does with seasons must do that."""
    claim, moved = MEANS.get(str(subject.spec.params.get("seasons"))), measures.get(SEASONS)
    if claim is None or moved is None:
        return
    if claim == "concat" and moved < SAME:
        yield f"{SEASONS} {moved:.2g}: it claims to keep seasons apart. Look at whether all of them are read"
    if claim == "mean" and moved > 0.01:
        yield f"{SEASONS} {moved:.2g}: it claims to average them. Look at whether all of them are read"


def network(subject: MethodSubject) -> str:
    """What the network is given, and whether that is what the method's parameters declare."""
    probes = subject.probes
    seen = probes.network
    if seen is None:
        raise Inapplicable("no network of torch was seen at work")
    doubts = []
    if seen.training:
        doubts.append("a network in training mode: its numbers depend on the batch. Call model.eval()")
    if seen.norms and seen.fresh >= FRESH * seen.norms and subject.spec.pretraining != ():
        state = f"{seen.fresh} of {seen.norms} layers that normalise are as they are before any training"
        doubts.append(f"{state}: look at whether the weights are loaded, or declare pretraining=()")
    doubts += _range(seen.channels)
    doubts += _against_declared(subject, probes)
    if doubts:
        raise Warn("; ".join(doubts), where=probes.dataset)
    spreads = [channel.std for channel in seen.channels]
    pooled = f", pooled by {seen.pooling}" if seen.pooling else ""
    return f"{len(spreads)} channels with spreads of {min(spreads):.2g} to {max(spreads):.2g}{pooled}"


def _range(channels: tuple[Channel, ...]) -> Iterator[str]:
    """Networks are trained on inputs of the order of one."""
    if not channels:
        return
    spread = float(np.median([channel.std for channel in channels]))
    offset = float(np.median([abs(channel.mean) for channel in channels])) / max(spread, 1e-300)
    if not SMALLEST <= spread <= LARGEST:
        yield (
            f"the inputs of the network have a spread of {spread:.2g} (usual: {SMALLEST} to {LARGEST:g}): look at the "
            "unit, and at mean and std"
        )
    elif offset > FARTHEST:
        yield (
            f"the inputs of the network are {offset:.2g} of their spreads away from 0 (usual: at most {FARTHEST:g}): "
            "look at whether mean and std are those of this product"
        )


def _against_declared(subject: MethodSubject, probes: Probes) -> Iterator[str]:
    """What the parameters say of pooling and of each channel, beside what was seen."""
    seen, params = probes.network, subject.spec.params
    if seen is None:
        return
    claim = params.get("pooling")
    if claim in ("class", "mean", "max") and seen.pooling and seen.pooling.split()[0] != claim:
        yield f"it declares pooling={claim}, and its rows are the {seen.pooling} token{'s' * (seen.pooling != 'class')}"
    declared = declared_channels(params, tuple(probes.bands))
    if declared and len(declared) == len(seen.channels) and all(channel.band for channel in seen.channels):
        yield from differences(seen.channels, declared, "its parameters declare")


def declared_channels(params: Mapping[str, object], bands: tuple[str, ...]) -> tuple[Channel, ...]:
    """The channels as the parameters bands, scale, offset, mean and std describe them; none if they do not.

    These names are what the adapters for libraries have, and any method may: ``((x + offset) / scale - mean) / std``.
    """
    if not isinstance(params.get("bands"), str) or "mean" not in params or "std" not in params:
        return ()
    words = str(params["bands"]).split()
    names = [name for word in words for name in bands if word in (name, name.partition("/")[0])]
    try:
        mean, std = ([float(word) for word in str(params[key]).split()] for key in ("mean", "std"))
        scale, offset = float(str(params.get("scale", 1.0))), float(str(params.get("offset", 0.0)))
    except ValueError:
        return ()
    mean, std = (part * len(names) if len(part) == 1 else part for part in (mean, std))
    if not len(names) == len(mean) == len(std):
        return ()
    return tuple(
        Channel(0, 0, name, 1 / (scale * s), (offset / scale - m) / s)
        for name, m, s in zip(names, mean, std, strict=True)
    )


def differences(got: tuple[Channel, ...], wanted: tuple[Channel, ...], whose: str) -> Iterator[str]:
    """Where channels differ from others in band, unit or statistics: one sentence for each kind."""
    moved = [f"{a.band} for {b.band}" for a, b in zip(got, wanted, strict=True) if a.band != b.band]
    if moved:
        yield f"{whose} other bands: the network gets {join_names(moved)}. Look at the order of bands"
        return
    ratios = [a.gain / b.gain for a, b in zip(got, wanted, strict=True)]
    middle = float(np.median(ratios))
    if not 0.5 < middle < 2:
        yield f"{whose} another unit or spread: the inputs are {middle:.2g} times as large. Look at scale and std"
        return
    shifts = [abs(a.bias / a.gain - b.bias / b.gain) * abs(b.gain) for a, b in zip(got, wanted, strict=True)]
    if max(abs(math.log(max(ratio, 1e-300))) for ratio in ratios) > math.log1p(CLOSE) or max(shifts) > CLOSE:
        odd = [a.band for a, r, s in zip(got, ratios, shifts, strict=True) if abs(r - 1) > CLOSE or s > CLOSE]
        yield f"{whose} other statistics of {join_names(odd)}: look at mean and std"


def distinct(subject: MethodSubject) -> str:
    """Whether the embeddings, or all scores, are those of another method on record."""
    try:
        records = [record for record in read_all(registry_dir()) if record.ok]
    except NeucoError as error:
        raise NoEvidence("the records cannot be read", got=str(error)) from error
    mine = {record.key[1:]: record for record in records if record.method == subject.id}
    # Embeddings that another check has made; nothing is encoded for this one alone.
    made = vars(subject).get("outcome") if subject.spec.sees_images else subject.embeddings
    own = {(name, rows.sha256) for name, rows in made.items()} if isinstance(made, dict) else set()
    own |= {(record.dataset, str(record.inputs["embeddings"])) for record in mine.values()}
    datasets = {dataset for dataset, _ in own}
    if not datasets:
        raise NoEvidence("neither embeddings nor records of the method are here")
    by_method: dict[str, list[Record]] = {}
    for record in records:
        if record.method != subject.id and record.dataset in datasets:
            by_method.setdefault(record.method, []).append(record)
    same = [name for name, others in by_method.items() if all(_equal(r, mine.get(r.key[1:]), own) for r in others)]
    if same:
        raise Warn(
            f"the same numbers as {join_names(same)} on every dataset that both were scored on: look at whether the "
            "weights and the size that the parameters name are the ones that are loaded"
        )
    return f"unlike {len(by_method)} methods on record"


def _equal(other: Record, mine: Record | None, own: set[tuple[str, str]]) -> bool:
    if (other.dataset, str(other.inputs["embeddings"])) in own:
        return True
    return mine is not None and other.per_split == mine.per_split and len(set(other.per_split)) > 3
