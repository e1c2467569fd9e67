"""Coders of embeddings, and the probe that scores what comes back from them.

They are apart from what draws and ranks curves: records name the code of this package, and outlive a changed figure.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import KINDS, Coder, Probe

HERE = "neuco_extensions.coded"
CODERS = {
    "float32": ("coders:BaseCoder", "as they are"),
    "float16": ("coders:Float16", "half precision"),
    "float8": ("coders:Float8", "e4m3: one scale for all, 3 bits of mantissa"),
    "int8": ("coders:Int8", "256 even steps per dimension"),
    "int4": ("coders:Int4", "16 even steps per dimension"),
    "int8_vector": ("coders:Int8Vector", "even steps, a scale stored with each vector"),
    "int4_vector": ("coders:Int4Vector", "the same in 4 bits"),
    "int8_square": ("coders:Int8Square", "signed square, as AlphaEarth's: sign(q)(q/127.5)²"),
    "int4_square": ("coders:Int4Square", "the same in 4 bits"),
    "binary": ("coders:Binary", "above the dimension's median or not"),
    "steps": ("coders:FineSteps", "STEPS even steps to a standard deviation; one byte, made for entropy coding"),
    "prefix": ("coders:Prefix", "the first DIM dimensions"),
    "pca": ("coders:Pca", "the first DIM principal components"),
    "pq": ("coders:ProductQuantiser", "product quantisation in BYTES bytes"),
    "opq": ("coders:RotatedQuantiser", "product quantisation in BYTES bytes after a learned rotation"),
    "entropy": ("entropy:Entropy", "a range coder behind another coder"),
}


@hookimpl
def neuco_probes() -> Iterator[Probe]:
    """Named by a protocol, as in ``ridge+coder=int8,of=ridge,probe=coded``."""
    title = "another probe, on what comes back from a coder"
    made, key = f"{HERE}.probe:CodedProbe", f"{HERE}.probe:key"
    # The others are for probes that predict no labels, such as a retrieval, and so have a metric of their own.
    for metric, kinds in (("", KINDS), ("map", KINDS[1:]), ("v_measure", KINDS[1:2])):
        name = f"coded_{metric}" if metric else "coded"
        yield Probe(id=name, title=title, factory=made, kinds=kinds, metric=metric, made_of=key)


@hookimpl
def neuco_coders() -> Iterator[Coder]:
    """Ours are named without the ``coded-`` in front."""
    for name, (part, title) in CODERS.items():
        yield Coder(id=f"coded-{name}", title=title, factory=f"{HERE}.{part}")
