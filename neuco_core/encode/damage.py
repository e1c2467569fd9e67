"""Samples that cannot be read: all that were met are named together, or left out and counted."""

from __future__ import annotations

from collections.abc import Sequence

from neuco_core.cubes.cubes import CubeSource
from neuco_core.errors import DataError
from neuco_core.text import counted

NAMED = 5  # in an error


def readable(
    ids: Sequence[str], source: CubeSource, error: DataError, left_out: dict[str, str] | None
) -> tuple[str, ...]:
    """Those of the samples that can be read; the others are added to ``left_out``, each with the reason.

    ``error`` is how it was noticed. It is raised if each sample can be read by itself. Where nothing may be left out
    (None), an error names all that are damaged among these, so that one run shows more than one of them.
    """
    bad = {name: reason for name in ids if (reason := _problem(source, name))}
    if not bad:
        raise error
    if left_out is None:
        named = "; ".join(list(bad.values())[:NAMED]) + f" and {len(bad) - NAMED} more" * (len(bad) > NAMED)
        what = f"{len(bad)} of {counted(len(ids), 'sample')} looked at so far cannot be read"
        hint = "Repair them; `neuco embed --leave-out-damaged` leaves them out, and says which"
        raise DataError(what, got=named, hint=hint) from error
    left_out |= bad
    return tuple(name for name in ids if name not in bad)


def _problem(source: CubeSource, name: str) -> str:
    try:
        source.read([name])
    except DataError as error:
        return str(error)
    return ""
