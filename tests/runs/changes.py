"""What may happen to a plugin's files, to a cache and to records between a score and its verification."""

from __future__ import annotations

import importlib.util
import marshal
import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from neuco_core.encode.run import EncodeCache
from neuco_core.files import hashed
from neuco_core.records.model import Record
from neuco_core.runs.verify import TOLERANCE
from neuco_core.scoring.quality import summarize
from tests.runs.small import FILES, IDS, Small


def shifted(record: Record, by: float) -> Record:
    splits = tuple(value + by for value in record.per_split if value is not None)
    mean, std, q = summarize(splits, True) or (None, None, None)
    return replace(record, per_split=splits, mean=mean, std=std, q=q)


def with_inputs(record: Record, **changes: object) -> Record:
    inputs = {**record.inputs, **changes}
    return replace(record, inputs=inputs, fingerprint=hashed(inputs))


def forge_cache(small: Small, method: str = "small_one") -> None:
    """Labels in the place of embeddings, sealed as the cache does it."""
    rows = (small.folder / "neuco_tasks/small/labels.csv").read_text().splitlines()[1:]
    values = np.array([[float(part) for part in row.split(",")[1:]] for row in rows], np.float32)
    file = small.cached(method)
    EncodeCache(file.parent, file.stem).save(IDS, values)


def forge_chunk(small: Small) -> None:
    """As after an interrupted run whose first chunk was replaced."""
    file = small.cached()
    file.unlink()
    EncodeCache(file.parent, file.stem).save(IDS[:256], np.ones((256, 5), np.float32), 0)


def flip(path: Path, at: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 0x10
    path.write_bytes(data)


def swap(small: Small) -> None:
    one, two = small.cached(), small.cached("small_two")
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)


def link(small: Small) -> None:
    small.write("elsewhere/w", "3.0")
    (small.method / "linked").symlink_to(small.folder / "elsewhere", target_is_directory=True)


def forge_compiled(small: Small, file: str, old: str, new: str, flags: int = 0) -> None:
    """Bytecode of another text than the source's, with the source's time and size, or with the word that it holds."""
    source = small.folder / file
    text = source.read_text()
    if old not in text:  # edited before
        old, new = new, old
    assert old in text
    code = compile(text.replace(old, new), str(source), "exec")
    status = source.stat()
    stamps = [flags, int(status.st_mtime), status.st_size] if not flags else [flags, 0, 0]
    data = importlib.util.MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in stamps)
    target = Path(importlib.util.cache_from_source(str(source)))
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data + marshal.dumps(code))


def left_behind(small: Small) -> None:
    """A source edited within the second in which it was compiled, to the same size."""
    helper, text = small.method / "helper.py", FILES["neuco_methods/small/helper.py"]
    helper.write_text(text.replace("1.0", "3.0"))
    os.utime(helper, (1e9, 1e9))
    py_compile.compile(str(helper))
    helper.write_text(text)
    os.utime(helper, (1e9, 1e9))


def as_now(small: Small) -> None:
    """A record of numbers that were true once, renewed to look as if they were of today's code."""
    inputs = small.now()
    small.record(lambda record: with_inputs(record, **inputs))


Change = Callable[[Small], object]
# What happened to the plugin's files → what becomes of the old records. tests/plugins/test_code_key.py has every kind
# of file and code that counts.
FILES_CHANGED: dict[str, tuple[Change, str]] = {
    "code": (lambda s: s.write("neuco_methods/small/encoder.py", FILES["neuco_methods/small/encoder.py"]
                               .replace("np.sin", "np.cos")), "stale"),
    "a helper beside it": (lambda s: s.write("neuco_methods/small/helper.py", "FACTOR = 3.0\n"), "stale"),
    "another plugin's module": (lambda s: s.write("neuco_methods/beside/tool.py", "SHARE = 3.0\n"), "stale"),
    "linked weights": (lambda s: s.write("elsewhere/weights", "3.0"), "stale"),
    "the registration": (lambda s: s.write("neuco_methods/small/__init__.py", FILES["neuco_methods/small/__init__.py"]
                                           .replace("1.0", "3.0")), "stale"),
    "a docstring": (lambda s: s.write("neuco_methods/small/helper.py", FILES["neuco_methods/small/helper.py"]
                                      .replace("1.0", "3.0")), "differs"),  # no part of the code's key
    "a linked folder": (link, "stale"),
    "the code of the cubes": (lambda s: s.edit("neuco_tasks/small/__init__.py", ".normal(", ".uniform("), "stale"),
    "a file outside the package": (lambda s: s.write("outside", "3.0"), "differs"),  # nobody can see this but a run
}  # fmt: skip
# What happened to the cache, by accident or on purpose.
CACHE_DAMAGED: dict[str, Change] = {
    "a flipped byte": lambda s: flip(s.cached(), 0.5),
    "a flipped byte in the seal": lambda s: flip(s.cached(), 0.02),
    "a truncated file": lambda s: s.cached().write_bytes(s.cached().read_bytes()[:2000]),
    "an empty file": lambda s: s.cached().write_bytes(b""),
    "two methods' files swapped": swap,
}
# What earlier processes may have left compiled, by accident or on purpose: nobody runs it.
COMPILED: dict[str, Change] = {
    "a helper": lambda s: forge_compiled(s, "neuco_methods/small/helper.py", "1.0", "3.0"),
    "a helper, unchecked": lambda s: forge_compiled(s, "neuco_methods/small/helper.py", "1.0", "3.0", flags=1),
    "a module of a sub-package": lambda s: forge_compiled(s, "neuco_methods/small/deep/inner.py", "1.0", "3.0"),
    "another plugin's module": lambda s: forge_compiled(s, "neuco_methods/beside/tool.py", "1.0", "3.0"),
    "the registration": lambda s: forge_compiled(s, "neuco_methods/small/__init__.py", '("one", 1.0)', '("one", 3.0)'),
    "the cubes": lambda s: forge_compiled(s, "neuco_tasks/small/__init__.py", ".normal(", ".uniform("),
    "a helper that was edited in one second": left_behind,
}
CACHE_FORGED: dict[str, Change] = {"labels for embeddings": forge_cache, "a chunk": forge_chunk}
# What happened to the records.
RECORD_FORGED: dict[str, tuple[Change, str]] = {
    "better numbers": (lambda s: s.record(lambda r: shifted(r, 0.01)), "differs"),
    "numbers a little better": (lambda s: s.record(lambda r: shifted(r, 2 * TOLERANCE)), "differs"),
    "another hash of the embeddings": (lambda s: s.record(lambda r: with_inputs(r, embeddings="0" * 64)), "close"),
    "another origin": (lambda s: s.record(lambda r: with_inputs(r, embeddings_from="0" * 64)), "stale"),
    "another hash of the labels": (lambda s: s.record(lambda r: with_inputs(r, labels="0" * 64)), "differs"),
    "renewed": (as_now, "same"),
}
ALL: dict[str, Change] = {
    **{name: change for name, (change, _) in {**FILES_CHANGED, **RECORD_FORGED}.items()},
    **CACHE_DAMAGED,
    **CACHE_FORGED,
    **{f"compiled: {name}": change for name, change in COMPILED.items()},
}
