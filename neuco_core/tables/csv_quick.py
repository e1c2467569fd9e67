"""Large CSV files of embeddings, read in blocks of whole lines by compiled code, several blocks side by side."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from neuco_core.env import available_cores
from neuco_core.errors import DataError
from neuco_core.tables import csv as _csv

# Bytes from which on this is quicker: a smaller file is read by plain Python before the compiled code is even loaded.
LARGE = 4 << 20
BLOCK = 2 << 20  # bytes, to stay in the processor's cache
MOST_THREADS = 8
ODD = 4096  # cells that are no plain numbers, before they are looked at
T = TypeVar("T")


class OddError(Exception):
    """This file needs a closer look: plain Python reads it row by row, or says why it cannot."""


@dataclass
class Blocks:
    """A file cut at the ends of lines: the byte at which each block begins and at last the end, and lines by block."""

    path: Path
    cuts: list[int]
    lines: list[int] = field(default_factory=list)

    def each(self, work: Callable[[int, np.ndarray, int], T]) -> Iterator[T]:
        """The results of ``work(block, text, size)`` in their order; the text has room for one byte more."""
        count = min(available_cores(), MOST_THREADS, len(self.cuts) - 1)
        with ThreadPoolExecutor(count, thread_name_prefix="neuco-csv") as pool:
            try:
                yield from pool.map(lambda block: work(block, *self._text(block)), range(len(self.cuts) - 1))
            finally:
                pool.shutdown(cancel_futures=True)

    def _text(self, block: int) -> tuple[np.ndarray, int]:
        start, stop = self.cuts[block : block + 2]
        text = np.empty(stop - start + 1, np.uint8)
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            if file.readinto(memoryview(text)[:-1]) < stop - start:  # type: ignore[arg-type]
                raise DataError("the file has become shorter while it was read", where=self.path)
        return text, stop - start


def cut(path: Path) -> Blocks:
    """Cut a file into blocks and count their lines; what cannot be CSV is refused as ``csv.scan`` does."""
    from neuco_core.tables import csv_kernel

    csv_kernel.warm()
    try:
        blocks = Blocks(path, list(_cuts(path)))
        counted = list(blocks.each(lambda _, text, size: csv_kernel.count_lines(text, size)))
    except OSError as error:
        raise _csv.unreadable(path, error) from error
    if any(zeros for _, zeros in counted):
        _csv.scan(path)  # which says where
    blocks.lines = [lines for lines, _ in counted]
    return blocks


def _cuts(path: Path) -> Iterator[int]:
    size, at = path.stat().st_size, 0
    with path.open("rb") as file:
        _csv.check_magic(file.read(64), path)
        yield at
        while at + BLOCK < size:
            file.seek(at + BLOCK)
            file.readline()
            at = file.tell()
            yield at
    if at < size:
        yield size


def read_blocks(
    blocks: Blocks, header: Sequence[str], places: Sequence[int], strict: bool, number: Callable[[str], float]
) -> tuple[list[str], np.ndarray, Mapping[str, int]]:
    """Ids, values and what was replaced by 0; ``number`` reads a cell that is no plain number (NaN: neither can it)."""
    from neuco_core.tables import csv_kernel

    skip = _header_bytes(blocks, header)
    rows = [*blocks.lines[:-1], blocks.lines[-1] + 1]  # the last line may end without a newline
    rows[0] -= 1
    first = list(itertools.accumulate(rows, initial=0))
    if first[-1] > blocks.cuts[-1] // len(header) + 1:  # a row has a separator for each column
        raise OddError
    values = np.empty((first[-1], len(places)), np.float32)
    targets = np.full(len(header), csv_kernel.IGNORED)
    targets[list(places)] = np.arange(len(places))
    targets[header.index("id")] = csv_kernel.ID
    work = _Work(values, first, skip, targets, strict, number)
    ids: list[str] = []
    replaced: Counter[str] = Counter()
    for names, counts in blocks.each(work.block):
        ids += names
        replaced += counts
    if "" in ids or len(set(ids)) != len(ids) or replaced.total() == len(ids) * len(places):
        raise OddError
    return ids, values[: len(ids)], replaced


def _header_bytes(blocks: Blocks, header: Sequence[str]) -> int:
    """The length of the first line, if that is the whole header."""
    with blocks.path.open("rb") as file:
        line = file.readline(blocks.cuts[1])
    try:
        names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], strict=True), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise OddError from error
    if [name.strip() for name in names] != list(header):
        raise OddError
    return len(line)


@dataclass(frozen=True)
class _Work:
    """What all blocks share."""

    values: np.ndarray
    first: Sequence[int]
    skip: int
    targets: np.ndarray
    strict: bool
    number: Callable[[str], float]

    def block(self, block: int, text: np.ndarray, size: int) -> tuple[list[str], Counter[str]]:
        from neuco_core.tables import csv_kernel as kernel

        last = block == len(self.first) - 2
        while last and size and text[size - 1] in b"\r\n":  # blank lines at the end
            size -= 1
        text[size] = kernel.NEWLINE
        values = self.values[self.first[block] : self.first[block + 1]]
        names, odd = np.empty((len(values), 2), np.int64), np.empty((ODD + len(self.targets), 4), np.int64)
        replaced: Counter[str] = Counter()
        at, row, state = self.skip if block == 0 else 0, 0, kernel.FULL
        while state == kernel.FULL:
            state, at, row, count = kernel.read_rows(text, at, size, self.targets, values, row, names, odd)
            replaced += self._settle(text, values, odd[:count])
        if state == kernel.BROKEN or (row < len(values) and not last):
            raise OddError
        return [_csv.clean_id(_text(text, place)) for place in names[:row]], replaced

    def _settle(self, text: np.ndarray, values: np.ndarray, odd: np.ndarray) -> Counter[str]:
        """Read the cells that compiled code did not; a cell that is refused is left to who can say where it is."""
        replaced: Counter[str] = Counter()
        for row, column, *place in odd.tolist():
            cell = _text(text, place)
            with np.errstate(over="ignore"):
                value = np.float32(self.number(cell))
            if np.isinf(value) or (np.isnan(value) and self.strict):
                raise OddError
            if np.isnan(value):
                replaced["missing" if cell.strip() in _csv.MISSING else "not_a_number"] += 1
                value = np.float32(0)
            values[row, column] = value
        return replaced


def _text(text: np.ndarray, place: Any) -> str:
    try:
        return text[place[0] : place[1]].tobytes().decode()
    except UnicodeDecodeError as error:
        raise OddError from error
