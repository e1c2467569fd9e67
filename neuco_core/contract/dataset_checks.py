"""The contract of a dataset that is a plugin by itself; one beside tasks is tried by theirs."""

from __future__ import annotations

from neuco_core.contract.common_checks import require_words
from neuco_core.contract.contract import Broken, check
from neuco_core.contract.metadata import check_license
from neuco_core.contract.subjects import DatasetSubject
from neuco_core.plugins.catalog import load_protocol


@check(
    "dataset-metadata",
    "dataset",
    asks="title, description, SPDX licence, bands, and a protocol that exists, if one is named",
    reason="people who did not make the dataset score methods on it",
    cure="fill in the fields of Dataset(…)",
)
def metadata(subject: DatasetSubject) -> str:
    require_words(subject)
    if not subject.spec.bands:
        raise Broken("no bands", expected="bands=(…), by which methods know whether they can be run")
    if subject.spec.protocol:
        load_protocol(subject.spec.protocol)
    return f"{check_license(subject.spec.license)}, {len(subject.spec.bands)} bands"


@check(
    "dataset-images",
    "dataset",
    asks="every image can be read, and bands and seasons are those declared",
    reason="a damaged image stops every encoder, and one that is left out in silence changes every score",
    cure="`neuco data verify DATASET` names each damaged image; pack them again without these",
)
def images(subject: DatasetSubject) -> str:
    from neuco_core.cubes.cubes import damaged, source_of
    from neuco_core.tables.csv import shown

    source, spec = source_of(subject.spec), subject.spec
    if (source.bands, source.seasons) != (spec.bands, spec.seasons):
        expected, got = (f"{shown(item.bands)} and {shown(item.seasons)}" for item in (spec, source))
        raise Broken("other bands or seasons than declared", expected=expected, got=got)
    bad = {name: reason for name, reason in damaged(source) if reason}
    if bad:
        name, reason = next(iter(bad.items()))
        raise Broken(f"{len(bad)} of {len(source.ids())} images cannot be read", got=f"{name}: {reason}")
    height, width = source.read(source.ids()[:1]).values.shape[-2:]
    return f"{len(source.ids())} images of {len(source.bands)} bands, {height} × {width} pixels"
