"""``neuco new dataset``: pack a folder of images, or take an archive that is published, and write the plugin."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neuco_core.contract import scaffold
from neuco_core.contract.scaffold import Place, Words
from neuco_core.errors import UsageError
from neuco_core.plugins.catalog import load_protocol

if TYPE_CHECKING:
    from neuco_core.cubes.archive import Index

FILE = "images.zip"


@dataclass(frozen=True)
class NewDataset:
    """What was made: the archive's index, the images left out with the reasons, the table that came with them."""

    path: Path
    index: Index
    left_out: Mapping[str, str]
    others: Mapping[str, int]
    table: str = ""


def new_dataset(
    words: Words,
    images: str,
    *,
    bands: Sequence[str] = (),
    seasons: Sequence[str] = (),
    protocol: str = "ridge",
    leave_out_damaged: bool = False,
    into: Path | None = None,
    as_package: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> NewDataset:
    """Write a plugin for a folder or a published set of images, or for an archive of ours, here or at an address."""
    from neuco_core.cubes.archive import open_archive, pack_images
    from neuco_core.cubes.folder import ImageFolder

    load_protocol(protocol)
    place = scaffold.choose_place(words.name, "neuco_tasks", into, as_package)
    left_out: Mapping[str, str] = {}
    others: Mapping[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch, scaffold.building(place) as folder:
        path, table, origin = brought(images, Path(scratch))
        packed = path.is_dir()
        if packed:
            source = ImageFolder(path, bands, seasons)
            path, others = Path(scratch) / FILE, source.others
            left_out = pack_images(source, path, leave_out_damaged=leave_out_damaged, progress=progress)
        elif bands or seasons or leave_out_damaged:
            raise UsageError("an archive has its names already", expected="these options with a folder", got=images)
        archive, index = open_archive(path)
        archive.close()
        address = place.address(FILE) if packed or not images.startswith(scaffold.ENDINGS) else images
        if address != images:
            _refuse_large(path, place, images, words.name)
            shutil.copyfile(path, folder / FILE)
        fields = _fields(words, index, address, left_out, protocol)
        fields["source_words"] = f"{fields['source_words']}{origin}"
        fields["images"] = scaffold.declare(scaffold.remote_of(address, path), 0)
        for name, template in (("__init__.py", "init.py"), ("README.md", "card.md"), ("test.py", "test.py")):
            (folder / name).write_text(scaffold.fill(f"dataset_{template}", fields), encoding="utf-8")
        if as_package:
            scaffold.write_package(folder, words, ["dataset"], place.package)
    return NewDataset(place.target, index, left_out, others, table)


def brought(images: str, scratch: Path) -> tuple[Path, str, str]:
    """A folder or an archive; of a published set a folder, the table that came with it, and words on where from."""
    from neuco_core.cubes.published import is_published_set, unpack_set

    if Path(images).is_dir():
        return Path(images), "", ""
    path = scaffold.bring(images, scratch)
    if not is_published_set(path):
        return path, "", ""
    origin = f", packed from {images} (sha256 {scaffold.remote_of('file:///x', path).sha256})"
    return scratch / "set", unpack_set(path, scratch / "set"), origin


def _refuse_large(path: Path, place: Place, images: str, name: str) -> None:
    hint = (
        f"Publish them first: `neuco data package {images} --out {name}.zip`, `neuco data upload {name}.zip "
        "s3://BUCKET/PREFIX/` (or Hugging Face, a release on GitHub), then `neuco new dataset "
        f"{name} --images ADDRESS`; to try it on this machine alone, the address may be file:///…/{name}.zip"
    )
    scaffold.refuse_large(path, place, hint)


def _fields(words: Words, index: Index, address: str, left_out: Mapping[str, str], protocol: str) -> dict[str, object]:
    height, width = index.size
    systems = Counter(sample.crs for sample in index.samples.values() if sample.crs)
    told = ", ".join(f"{count} in {system}" for system, count in systems.most_common(3))
    places = f"Georeferenced: {told}." if systems else "The files say nothing of where they lie."
    gone = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
    return {
        **words.fields(),
        "caveats": words.caveats or scaffold.CAVEATS["dataset"],
        "citation_words": words.citation or "None yet.",
        "protocol": protocol,
        "count": len(index.samples),
        "height": height,
        "width": width,
        "shape": ", ".join(map(str, (len(index.seasons), len(index.bands), height, width))),
        "bands": scaffold.names_literal(index.bands, 0),
        "seasons": scaffold.names_literal(index.seasons, 0),
        "bands_words": ", ".join(f"`{band}`" for band in index.bands),
        "place_words": places,
        "source_words": f"`{FILE}`" if address.startswith("pkg:") else address,
        "left_out_words": f"Left out, because damaged: {gone}" if gone else "No image was left out.",
    }
