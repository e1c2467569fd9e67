"""A method's encoder: its packages and parameters, the cubes that it needs, and whether what it gives will do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.cubes.cubes import CubeSource, select
from neuco_core.encode.lock import check_lock
from neuco_core.encoders import MAX_DIM
from neuco_core.env import requirement_name
from neuco_core.errors import DataError, DependencyError, NeucoError, PluginError, UsageError
from neuco_core.fetch.fetch import fetch
from neuco_core.plugins.code_key import StandIn
from neuco_core.text import join_names

if TYPE_CHECKING:
    from neuco_core.specs import Dataset, Method


def check_packages(method: Method) -> None:
    """Raise an error with the pip command if a package that the method requires is not installed."""
    if isinstance(method.encoder, StandIn):
        return  # it ran elsewhere, where they are
    check_lock(method)
    for requirement in method.requires:
        name = requirement_name(requirement)
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            hint = f"Install it with: pip install '{requirement}'"
            raise DependencyError(f"method {method.id!r} needs the package {name}", hint=hint) from None


def factory(method: Method) -> Callable[..., Any]:
    """What makes the method's encoder."""
    if method.encoder is None:
        raise UsageError(f"method {method.id!r} reads a file and has no encoder")
    return method.encoder


def full_params(method: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    """The method's parameters with the given ones in their place; a name that the encoder does not know is an error."""
    merged = {**method.params, **params}
    signature = inspect.signature(factory(method))
    try:
        signature.bind(**merged, **method.weights)
    except TypeError:
        known = ", ".join(name for name in signature.parameters if name not in method.weights) or "none"
        unknown = [name for name in merged if name not in signature.parameters or name in method.weights]
        unknown += [name for name in method.weights if name not in signature.parameters]
        raise UsageError(f"method {method.id!r} has no parameter {join_names(unknown)}; it has: {known}") from None
    for name, value in params.items():
        _check_type(method, name, value)
    return merged


def _check_type(method: Method, name: str, value: object) -> None:
    """A value must be of the same type as the method's own; a whole number will do for any number."""
    default = method.params.get(name)
    if default is None or type(value) is type(default) or (type(value) is int and type(default) is float):
        return
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[type(default)]
    raise UsageError(f"bad parameter {name} of method {method.id!r}", expected=words, got=repr(value))


def make_encoder(method: Method, params: Mapping[str, Any]) -> Any:
    """The method's encoder, with all its parameters (see ``full_params``) and its weights."""
    weights = {}
    if not isinstance(method.encoder, StandIn):
        weights = {name: fetch(remote) for name, remote in method.weights.items()}
    return factory(method)(**params, **weights)


def ready(method: Method, source: CubeSource, params: Mapping[str, Any]) -> Any:
    """The encoder, taught by the source if it learns."""
    with blame(method):
        encoder = make_encoder(method, params)
        if hasattr(encoder, "fit"):
            encoder.fit(source)
        return encoder


@contextmanager
def blame(method: Method) -> Iterator[None]:
    """An encoder belongs to a plugin: an unexpected exception becomes an error that names the method."""
    try:
        yield
    except (NeucoError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        text = f"its encoder failed with {type(error).__name__}: {error}"
        raise PluginError(text, where=f"method {method.id!r}", hint="Run with --debug for the traceback") from error


def check_output(method: Method, ids: tuple[str, ...], values: object) -> np.ndarray:
    """What an encoder gave for some samples, as float32, if it is one finite row for each of them."""
    rows = np.asarray(values)
    where = f"method {method.id!r}"
    if rows.ndim != 2 or len(rows) != len(ids) or rows.dtype.kind not in "fiu":
        shape = f"{rows.dtype} {rows.shape}"
        raise PluginError("bad encoder output", where=where, expected=f"numbers ({len(ids)}, dim)", got=shape)
    if not 1 <= rows.shape[1] <= MAX_DIM:
        expected = f"1 to {MAX_DIM} values"
        raise PluginError("bad encoder output", where=where, expected=expected, got=rows.shape[1])
    rows = rows.astype(np.float32)
    bad = [sample for sample, row in zip(ids, rows, strict=True) if not np.isfinite(row).all()]
    if bad:
        raise DataError(f"non-finite values for {len(bad)} samples ({join_names(bad)})", where=where)
    return rows


def open_cubes(method: Method, dataset: Dataset) -> CubeSource:
    """The dataset's cubes, if it has any, they have the bands that the method needs, and its packages are there."""
    if dataset.cubes is None:
        raise DataError(
            f"dataset {dataset.id!r} has no cubes, so the encoder {method.id!r} cannot be run on it",
            hint="Give a file of embeddings instead, or choose a method that brings one",
        )
    if dataset.bands:  # known without opening anything
        check_bands(method, dataset.id, dataset.bands)
    check_packages(method)  # after the bands: no package helps against a dataset that will not do
    source = dataset.cubes()
    check_bands(method, dataset.id, source.bands)
    absent = [season for season in method.seasons if season not in source.seasons]
    if absent:
        got = ", ".join(source.seasons)
        raise DataError(f"method {method.id!r} needs the seasons {join_names(absent)}", where=dataset.id, got=got)
    return chosen(method, source)


def chosen(method: Method, source: CubeSource) -> CubeSource:
    """The bands and seasons that the method names; others are not read, and the encoder does not see them."""
    if isinstance(method.encoder, StandIn):
        return source  # it reads what was made elsewhere
    return select(source, method.bands, method.seasons)


def check_bands(method: Method, dataset_id: str, bands: tuple[str, ...]) -> None:
    """A method names whole modalities or single bands; all of them must be there."""
    modalities = {band.partition("/")[0] for band in bands}
    missing = [name for name in method.bands if name not in bands and name not in modalities]
    if missing:
        raise DataError(
            f"method {method.id!r} needs {len(method.bands)} bands and dataset {dataset_id!r} has {len(bands)}: "
            f"{len(missing)} are missing ({join_names(missing)})",
            hint="`neuco methods` lists what each method needs",
        )


@contextmanager
def one_thread(torch_too: bool = True) -> Iterator[None]:
    """One thread for BLAS and torch: the sums round alike everywhere, and a busy machine does not stall them.

    On two busy cores a small convolution took 16 ms with two threads and 0.1 ms with one.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        if not torch_too:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
