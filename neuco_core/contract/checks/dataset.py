"""The contract of a dataset that is a plugin by itself; one beside tasks is tried by theirs."""

from __future__ import annotations

from neuco_core.contract.checks import check_license, require_description
from neuco_core.contract.contract import Broken
from neuco_core.contract.subjects import DatasetSubject
from neuco_core.cubes.cubes import damaged, source_of
from neuco_core.plugins.catalog import load_protocol
from neuco_core.tables.csv import shown


def metadata(subject: DatasetSubject) -> str:
    require_description(subject)
    if not subject.spec.bands:
        raise Broken("no bands", expected="bands=(…), by which methods know whether they can be run")
    if subject.spec.protocol:
        load_protocol(subject.spec.protocol)
    return f"{check_license(subject.spec.license)}, {len(subject.spec.bands)} bands"


def images(subject: DatasetSubject) -> str:
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
