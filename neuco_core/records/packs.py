"""Packed records: what publishing adds, a few files for each method instead of one for each cell.

A pack is the records of one method, one after another, each exactly the bytes of its file, compressed: ``xz -dc`` shows
them and ``jq`` reads them. Its name holds the hash of its content, so a pack is never changed, only replaced.
``records.json`` lists the packs of each method, the oldest first, with their hashes and the addresses from which they
can be fetched: they need not lie beside it, and what comes from elsewhere is verified.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from neuco_core.env import installed_version
from neuco_core.errors import DataError, FetchError
from neuco_core.files import read_limited, write_atomic
from neuco_core.jsonio import dump
from neuco_core.records.model import Count, Key, Sha256
from neuco_core.specs import Remote, versioned_id

MANIFEST, FOLDER = "records.json", "records"
DEFAULT_PROTOCOL = "neuco-2025"
LARGEST_MANIFEST = 50_000_000
LARGEST_PACK = 1 << 30  # bytes, unpacked: 300,000 records
PRESET = 1  # of 1,000 records: a tenth of the time of the usual 6, and a tenth more bytes
START, END = b"{\n", b"\n}\n"
RESTORE = "Restore it from version control"
MethodFolder = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}(\.[1-9][0-9]{0,18})?\Z")]


class Pack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose records a pack has (a method's folder), how many, and which bytes it is."""

    method: MethodFolder
    sha256: Sha256
    size: Count
    records: Count

    @property
    def file(self) -> str:
        """Its place below ``records/``, and in the addresses."""
        return f"{self.method}/{self.sha256[:16]}.json.xz"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The packs, of each method the oldest first; ``urls`` have ``{file}`` for a pack's file and may have ``{tag}``."""

    packs: tuple[Pack, ...] = ()
    urls: tuple[str, ...] = ()
    schema: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1


class Packs(NamedTuple):
    """The packs by the folder of their method, and the addresses."""

    by_method: Mapping[str, tuple[Pack, ...]]
    urls: tuple[str, ...]


class PacksAwayError(FetchError):
    """Records that are not on this machine and cannot be fetched now."""


def read_manifest(registry: Path) -> Packs:
    """What ``records.json`` lists; without the file, nothing is packed."""
    path = registry / MANIFEST
    try:
        known = path.stat()
    except OSError:
        return Packs({}, ())
    return _read_manifest(path, known.st_mtime_ns, known.st_size, known.st_ino)  # clocks of file systems tick slowly


@lru_cache(maxsize=4)
def _read_manifest(path: Path, *_: int) -> Packs:
    try:
        manifest = msgspec.json.decode(read_limited(path, LARGEST_MANIFEST), type=Manifest)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not a list of packed records: {str(error)[:300]}", where=path, hint=RESTORE) from error
    by_method: dict[str, tuple[Pack, ...]] = {}
    for pack in manifest.packs:
        by_method[pack.method] = (*by_method.get(pack.method, ()), pack)
    return Packs(by_method, manifest.urls)


def packed(registry: Path, folder: str) -> Mapping[str, bytes]:
    """The packed records of a method by file name; in a later pack one hides the same cell in an earlier pack."""
    packs = read_manifest(registry)
    return _merged(registry, packs.by_method.get(folder, ()), packs.urls)


@lru_cache(maxsize=8)  # readers go from method to method
def _merged(registry: Path, packs: tuple[Pack, ...], urls: tuple[str, ...]) -> Mapping[str, bytes]:
    return {name: data for pack in packs for name, data in _open(registry, pack, urls)}


def _open(registry: Path, pack: Pack, urls: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    where = locate(registry, pack, urls)
    try:
        data = read_limited(where, pack.size)
    except OSError as error:
        raise DataError(f"the pack cannot be read: {error.strerror or error}", where=where, hint=RESTORE) from error
    if hashlib.sha256(data).hexdigest() != pack.sha256:
        what = "the pack is not the one that records.json lists"
        raise DataError(what, where=where, expected=f"sha256 {pack.sha256}", hint=RESTORE)
    texts = split(_unpack(data, where), where)
    if len(texts) != pack.records:
        raise DataError("records are missing in the pack", where=where, expected=pack.records, got=len(texts))
    names = [_name(text, where) for text in texts]
    if len(set(names)) != len(names):
        raise DataError("a pack has two records of one cell", where=where, hint=RESTORE)
    yield from zip(names, texts, strict=True)


def locate(registry: Path, pack: Pack, urls: tuple[str, ...]) -> Path:
    """The file of a pack: beside the list, or fetched and verified; ``NEUCO_RECORDS`` names one more address."""
    path = registry / FOLDER / pack.file
    if path.exists():
        return path
    own = os.environ.get("NEUCO_RECORDS", "")
    addresses = [own.rstrip("/") + "/{file}"] * bool(own) + list(urls)
    what = f"the records of {pack.method!r} are not on this machine"
    if not addresses:
        hint = "Set NEUCO_RECORDS to an address or a folder (file://…) that has them, as registry/records of a checkout"
        raise PacksAwayError(what, where=path, hint=hint)
    from neuco_core.fetch.fetch import fetch

    # ``{tag}`` is that of the release: its packs stay where they are when later ones replace them on main.
    filled = [address.replace("{tag}", f"v{installed_version('neuco')}") for address in addresses]
    first, *others = (address.replace("{file}", quote(pack.file)) for address in filled)
    try:
        return fetch(Remote(first, pack.sha256, pack.size, tuple(others)), progress=False)
    except FetchError as error:
        raise PacksAwayError(f"{what}: {error.what}", where=error.where, hint=error.hint) from error


def gather_packs(registry: Path, target: Path) -> None:
    """Bring every pack of a registry into a copy of it, for a place without a network."""
    packs = read_manifest(registry)
    for pack in (pack for own in packs.by_method.values() for pack in own):
        place = target / FOLDER / pack.file
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(locate(registry, pack, packs.urls), place)


def _unpack(data: bytes, where: Path) -> bytes:
    """A small file can hold more than memory does."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        content = unpacker.decompress(data, LARGEST_PACK)
    except lzma.LZMAError as error:
        raise DataError(f"not a pack of records: {error}", where=where, hint=RESTORE) from error
    if not unpacker.eof or unpacker.unused_data:
        raise DataError("not a whole pack of records", where=where, expected=f"at most {LARGEST_PACK} bytes")
    return content


def split(content: bytes, where: object) -> list[bytes]:
    """The records in the content of a pack: every line of one but its first and last starts with a field's name."""
    if not content:
        return []
    if not (content.startswith(START) and content.endswith(END)):
        raise DataError("not a pack of records", where=where, hint=RESTORE)
    inner = content[len(START) : -len(END)].split(END + START)
    return [START + text + END for text in inner]


class _Place(msgspec.Struct):
    task: str
    task_version: int
    protocol: str


_place = msgspec.json.Decoder(_Place).decode


def _name(text: bytes, where: object) -> str:
    try:
        place = _place(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"a pack holds something that is not a record: {error}", where=where) from error
    return record_name(versioned_id(place.task, place.task_version), place.protocol)


@lru_cache(maxsize=4096)
def record_name(task: str, protocol: str) -> str:
    suffix = "" if protocol == DEFAULT_PROTOCOL else "@" + quote(protocol, safe="+=,")
    return f"{folder_name(task)}{suffix}.json"


def key_at(folder: str, name: str) -> Key:
    """The cell whose record has this place."""
    task, _, protocol = unquote(name.removesuffix(".json")).partition("@")
    return folder.replace(".", "@"), task.replace(".", "@"), protocol or DEFAULT_PROTOCOL


def folder_name(ref: str) -> str:
    """An id with its version as a part of a path; no id has a dot."""
    return ref.replace("@", ".")


def change_packs(
    registry: Path,
    new: Mapping[str, Mapping[str, bytes]],
    gone: Iterable[tuple[str, str]] = (),
    urls: Iterable[str] = (),
) -> None:
    """Add records, by folder and file name, and take others away. Packs of other methods stay as they are.

    A new pack takes in those before it that are no larger. So a record is written again no more often than the packs
    of its method double, and a method of n records has at most log2(n) packs, whatever the order in which they come.
    """
    before = read_manifest(registry)
    packs = dict(before.by_method)
    less: dict[str, set[str]] = {}
    for folder, name in gone:
        less.setdefault(folder, set()).add(name)
    for folder in sorted(new.keys() | less.keys()):
        kept, records = list(packs.pop(folder, ())), dict(new.get(folder, {}))
        while kept and (folder in less or kept[-1].records <= len(records)):
            records = {**dict(_open(registry, kept.pop(), before.urls)), **records}
        records = {name: data for name, data in records.items() if name not in less.get(folder, ())}
        kept += [_write(registry, folder, records)] if records else []
        packs |= {folder: tuple(kept)} if kept else {}
    rows = tuple(pack for folder in sorted(packs) for pack in packs[folder])
    now = msgspec.to_builtins(Manifest(rows, tuple(urls) or before.urls))
    write_atomic(registry / MANIFEST, dump({**now, "packs": list(now["packs"])}))  # a list has one line for each
    for folder in new.keys() | less.keys():
        listed = {pack.file for pack in packs.get(folder, ())}
        for path in (registry / FOLDER / folder).glob("*.json.xz"):
            if f"{folder}/{path.name}" not in listed:
                path.unlink()


def _write(registry: Path, folder: str, records: Mapping[str, bytes]) -> Pack:
    texts = [records[name] for name in sorted(records)]
    content = b"".join(texts)
    data = lzma.compress(content, lzma.FORMAT_XZ, preset=PRESET)
    pack = Pack(folder, hashlib.sha256(data).hexdigest(), len(data), len(records))
    path = registry / FOLDER / pack.file
    if split(content, path) != texts:
        raise DataError("records that a pack cannot hold", where=path)
    write_atomic(path, data)
    return pack
