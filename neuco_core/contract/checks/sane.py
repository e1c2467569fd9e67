"""Whether a method is what it claims to be: its embeddings look healthy, its network is used as it was meant to be.

A network gives numbers for anything, and a wrong wrapper costs points that nobody sees. None of these checks needs
labels. They warn: only output that is the same for every image cannot be right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn
from neuco_core.contract.probing import Channel, Network
from neuco_core.contract.sanity import NEIGHBOURS, NETWORK_LIMITS, SAME, SEASONS, agreement, measured, unusual
from neuco_core.contract.subjects import MethodSubject
from neuco_core.env import registry_dir
from neuco_core.errors import NeucoError
from neuco_core.records.model import Record
from neuco_core.records.store import read_all
from neuco_core.text import join_names

ROWS, FEWEST = 128, 100  # of a file; neighbours of fewer agree by chance
CLOSE = 0.02  # relative, of a gain


def sane(subject: MethodSubject) -> str:
    if subject.spec.sees_images:
        probes = subject.probes
        dataset, measures, refused = probes.dataset, probes.measures, probes.refused
    else:
        dataset, measures, refused = *_of_file(subject), {}
    if measures["relative spread"] < SAME:
        raise Broken("every sample has the same row", where=dataset, got=f"spread {measures['relative spread']:.2g}")
    doubts = [*unusual(measures), *_seasons(subject, measures.get(SEASONS))]
    doubts += [f"images with the change {kind!r} cannot be encoded: {why}" for kind, why in refused.items()]
    if doubts:
        raise Warn("; ".join(doubts), where=dataset)
    named = ("effective rank", "intrinsic dimension", NEIGHBOURS)
    return f"{dataset}: " + ", ".join(f"{name} {measures[name]:.3g}" for name in named if name in measures)


def _of_file(subject: MethodSubject) -> tuple[str, dict[str, float]]:
    """The measures of some rows of a file; beside plain statistics of the images, where these are here."""
    dataset, embeddings = next(iter(subject.embeddings.items()))
    rows = np.linspace(0, len(embeddings) - 1, min(ROWS, len(embeddings))).astype(int)
    some = embeddings.only({embeddings.ids[row] for row in rows})
    try:
        plain = subject.plain(dataset, some.ids)
    except NeucoError:
        return dataset, measured(some.values, len(some))
    place = {name: row for row, name in enumerate(plain.ids)}
    some = some.only(place)
    reference = plain.values[[place[name] for name in some.ids]]
    measures = measured(some.values, len(np.unique(reference, axis=0)))
    if len(some) >= FEWEST:
        measures[NEIGHBOURS] = agreement(some.values, reference)
    return dataset, measures


def _seasons(subject: MethodSubject, moved: float | None) -> Iterator[str]:
    """A method that says what it does with seasons must do that."""
    claim = subject.spec.params.get("seasons")
    if moved is not None and claim == "concat" and moved < SAME:
        yield f"{SEASONS} {moved:.2g}: it claims to keep seasons apart. Look at whether all of them are read"
    if moved is not None and claim in ("pre", "post") and moved > 0.01:
        yield f"{SEASONS} {moved:.2g}: it claims to average them. Look at whether all of them are read"


def network(subject: MethodSubject) -> str:
    """What the network is given, and whether that is what the method's parameters declare."""
    probes = subject.probes
    seen = probes.network
    if seen is None:
        raise Inapplicable("no network of torch was seen at work")
    random = subject.spec.pretraining == ()
    doubts = list(unusual({**seen.measures, "untrained layers": 0.0} if random else seen.measures, NETWORK_LIMITS))
    doubts += _against_declared(subject.spec.params, seen, probes.bands)
    if doubts:
        raise Warn("; ".join(doubts), where=probes.dataset)
    pooled = f", pooled by {seen.pooling}" if seen.pooling else ""
    return f"inputs with a spread of {seen.measures['spread of the inputs']:.2g}{pooled}"


def _against_declared(params: Mapping[str, object], seen: Network, bands: Sequence[str]) -> Iterator[str]:
    """What the parameters say of pooling and of each channel, beside what was seen."""
    claim = params.get("pooling")
    if claim in ("class", "mean", "max") and seen.pooling and seen.pooling.split()[0] != claim:
        yield f"it declares pooling={claim}, and its rows are the {seen.pooling} token{'s' * (seen.pooling != 'class')}"
    declared = declared_channels(params, bands)
    if declared and seen.channels and len(declared) == len(seen.channels):
        yield from differences(seen.channels, declared, "its parameters declare")


def declared_channels(params: Mapping[str, object], bands: Sequence[str]) -> tuple[Channel, ...]:
    """The channels as the parameters bands, scale, offset, mean and std describe them; none if they do not.

    These names are what the adapters for libraries have, and any method may: ``((x + offset) / scale - mean) / std``.
    """
    if not isinstance(params.get("bands"), str) or "mean" not in params or "std" not in params:
        return ()
    words = str(params["bands"]).split()
    names = [name for word in words for name in bands if word in (name, name.partition("/")[0])]
    try:
        mean, std = (np.array(str(params[key]).split(), dtype=float) for key in ("mean", "std"))
        scale, offset = float(str(params.get("scale", 1.0))), float(str(params.get("offset", 0.0)))
        gains, biases = (np.broadcast_to(x, len(names)) for x in (1 / (scale * std), (offset / scale - mean) / std))
    except ValueError:  # no numbers, or not one for each band
        return ()
    return tuple(Channel(name, float(g), float(b)) for name, g, b in zip(names, gains, biases, strict=True))


def differences(got: Sequence[Channel], wanted: Sequence[Channel], whose: str) -> Iterator[str]:
    """Where channels differ from others in band, unit or statistics: one sentence for each kind."""
    moved = [f"{a.band} for {b.band}" for a, b in zip(got, wanted, strict=True) if a.band != b.band]
    if moved:
        yield f"{whose} other bands: the network gets {join_names(moved)}. Look at the order of bands"
        return
    ratios = np.array([a.gain / b.gain for a, b in zip(got, wanted, strict=True)])
    middle = np.median(ratios)
    if not 0.5 < middle < 2:
        yield f"{whose} another unit or spread: the inputs are {middle:.2g} times as large. Look at scale and std"
        return
    shifts = np.array([(a.bias / a.gain - b.bias / b.gain) * b.gain for a, b in zip(got, wanted, strict=True)])
    odd = (np.abs(ratios - 1) > CLOSE) | (np.abs(shifts) > CLOSE)
    if odd.any():
        names = join_names([channel.band for channel, is_odd in zip(got, odd, strict=True) if is_odd])
        yield f"{whose} other statistics of {names}: look at mean and std"


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
