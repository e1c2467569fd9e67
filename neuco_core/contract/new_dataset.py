"""``neuco new dataset``: pack a folder of images, or take an archive that is published, and write the plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from neuco_core.contract import scaffold
from neuco_core.contract.scaffold import ADDRESSES, PluginRequest
from neuco_core.cubes.archive import open_archive, pack_images
from neuco_core.cubes.folder import ImageFolder
from neuco_core.cubes.published import is_published_set, unpack_set
from neuco_core.errors import UsageError
from neuco_core.plugins.catalog import load_protocol

FILE = "images.zip"


@dataclass(frozen=True, kw_only=True)
class DatasetRequest(PluginRequest):
    """``images`` is a folder, a published set of images, or an archive of ours, here or at an address."""

    images: str
    bands: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()
    protocol: str = "ridge"
    leave_out_damaged: bool = False
    noun: ClassVar[str] = "dataset"
    tree: ClassVar[str] = "neuco_tasks"


def new_dataset(
    request: DatasetRequest, progress: Callable[[int, int], None] | None = None
) -> tuple[Path, list[str], str]:
    """Write a plugin for images: where it is, what it has, and the table that came with them, if one did.

    ``progress`` is called with the number of images packed, and of all.
    """
    load_protocol(request.protocol)
    images, name = request.images, request.name
    left_out: Mapping[str, str] = {}
    others: Mapping[str, int] = {}
    with scaffold.building(request) as plugin:
        path, table, origin = bring_images(images, plugin.scratch)
        packed = path.is_dir()
        if packed:
            source = ImageFolder(path, request.bands, request.seasons)
            path, others = plugin.scratch / FILE, source.others
            left_out = pack_images(source, path, leave_out_damaged=request.leave_out_damaged, progress=progress)
        elif request.bands or request.seasons or request.leave_out_damaged:
            raise UsageError("an archive has its names already", expected="these options with a folder", got=images)
        archive, index = open_archive(path)
        archive.close()
        address = images
        if packed or not images.startswith(ADDRESSES):
            hint = (
                f"Publish them first: `neuco data package {images} --out {name}.zip`, `neuco data upload {name}.zip "
                "s3://BUCKET/PREFIX/` (or Hugging Face, a release on GitHub), then `neuco new dataset "
                f"{name} --images ADDRESS`; to try it on this machine alone, the address may be file:///…/{name}.zip"
            )
            address = plugin.keep(path, FILE, hint)
        systems = Counter(sample.crs for sample in index.samples.values() if sample.crs)
        plugin.write(
            index=index,
            located=", ".join(f"{count} in {system}" for system, count in systems.most_common(3)),
            left_out=left_out,
            images=scaffold.remote_of(address, path),
            source_text=(f"`{FILE}`" if address.startswith("pkg:") else address) + origin,
        )
    height, width = index.size
    lines = [
        f"{plugin.target}: {len(index.samples)} images of {height} × {width} pixels",
        f"  bands     {', '.join(index.bands)}",
        f"  places    {systems.total()} of {len(index.samples)} are georeferenced",
        *(f"  left out  {sample}: {reason}" for sample, reason in left_out.items()),
    ]
    if others:
        suffixes = ", ".join(f"{count} {suffix or 'without suffix'}" for suffix, count in others.items())
        lines.append(f"  no images {suffixes}: not looked at")
    return plugin.target, lines, table


def bring_images(images: str, scratch: Path) -> tuple[Path, str, str]:
    """A folder or an archive; of a published set a folder, the table that came with it, and words on its origin."""
    if Path(images).is_dir():
        return Path(images), "", ""
    scaffold.refuse_http(images)
    path = scaffold.bring(images, scratch)
    if not is_published_set(path):
        return path, "", ""
    origin = f", packed from {images} (sha256 {scaffold.remote_of(path.absolute().as_uri(), path).sha256})"
    return scratch / "set", unpack_set(path, scratch / "set"), origin
