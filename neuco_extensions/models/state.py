"""Weights from a verified file into a network: tensors only, no pickled objects, and nothing left over in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuco_core.errors import DataError, PluginError
from neuco_core.text import join_names, one_line

WRAPPERS = ("state_dict", "model", "teacher")  # under which training scripts keep the weights beside other things


def read_state(path: Path, within: str = "") -> dict[str, Any]:
    """The tensors of a ``.safetensors`` or torch file by name; ``within`` names the part of it to take."""
    state: Any = _read(path)
    if within:
        if not isinstance(state.get(within), Mapping):
            raise DataError("no such part in the weights", where=path, expected=within, got=join_names(list(state)))
        return dict(state[within])
    for name in WRAPPERS:
        if isinstance(state.get(name), Mapping):
            return dict(state[name])
    return dict(state)


def _read(path: Path) -> Any:
    import torch

    with path.open("rb") as file:
        start = file.read(9)
    # A cached file may have lost its suffix; this format begins with the length of a JSON header.
    if path.suffix == ".safetensors" or start[8:] == b"{":
        from safetensors.torch import load_file  # type: ignore[import-not-found]

        return load_file(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has many; all of them mean that these are not plain tensors
        what = f"weights cannot be read: {one_line(str(error), 200) or type(error).__name__}"
        raise DataError(what, where=path, hint="Save tensors only, as safetensors") from error
    if not isinstance(state, Mapping):
        raise DataError("not weights", where=path, expected="tensors by name", got=type(state).__name__)
    return state


def load_state(
    model: Any,
    state: Mapping[str, Any],
    *,
    drop: Sequence[str] = (),
    optional: Sequence[str] = (),
    surplus: bool = False,
    where: object = "",
) -> Any:
    """The network with all its weights set; names that begin with ``drop`` are left out.

    A part that is missing, unless its name begins with ``optional``, or of another shape is an error: half a network
    gives numbers as well. So is one too many, unless a ``surplus`` is expected, such as the decoder of a pre-training.
    """
    own = model.state_dict()
    kept = {name: value for name, value in state.items() if not name.startswith(tuple(drop))}
    if surplus:
        kept = {name: value for name, value in kept.items() if name in own}
    missing = [name for name in own if name not in kept and not name.startswith(tuple(optional))]
    extra = [name for name in kept if name not in own]
    if missing or extra:
        parts = f"missing {join_names(missing) or 'none'}; extra {join_names(extra) or 'none'}"
        text = f"the weights do not fit: {len(missing)} parts missing, {len(extra)} too many"
        raise PluginError(text, where=where, got=parts, hint="Another version of the library may be needed")
    odd = [name for name, value in kept.items() if tuple(value.shape) != tuple(own[name].shape)]
    if odd:
        expected, got = (tuple(found[odd[0]].shape) for found in (own, kept))
        text = f"the weights do not fit: {odd[0]} has another shape"
        raise PluginError(text, where=where, expected=expected, got=got)
    model.load_state_dict({**own, **kept})
    return model
