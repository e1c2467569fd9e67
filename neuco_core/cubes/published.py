"""Sets of images as others publish them: a Parquet file of Hugging Face, or a zip of image files.

Their images are put into a folder and read as any folder is; what else a Parquet file says of them becomes a table.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neuco_core.cubes.images import SUFFIXES
from neuco_core.errors import DataError
from neuco_core.tables.csv import first_double
from neuco_core.tables.limits import check_members

# How files begin, and the suffix that they should have.
MAGIC = {b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"II*\0": ".tif", b"MM\0*": ".tif", b"\x93NUMPY": ".npy"}
PARQUET, ZIP = b"PAR1", b"PK"


def is_published_set(path: Path) -> bool:
    """Whether this is a Parquet file, or a zip that is no archive of ours."""
    from neuco_core.cubes.archive import INDEX

    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(ZIP):
        with zipfile.ZipFile(path) as archive:
            return INDEX not in archive.namelist()
    return start == PARQUET


def unpack_set(path: Path, folder: Path) -> str:
    """Put the images into a folder, each under its id; gives the other columns as CSV, "" if there are none."""
    folder.mkdir(parents=True)
    with path.open("rb") as file:
        return _parquet(path, folder) if file.read(4) == PARQUET else _zip(path, folder)


def _zip(path: Path, folder: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        check_members(archive, path)
        for member in archive.infolist():
            name = Path(member.filename).name
            if Path(name).suffix.lower() in SUFFIXES and not member.is_dir():
                if (folder / name).exists():
                    hint = "Give each a name of its own"
                    raise DataError(f"two images have the name {name!r}", where=path, hint=hint)
                (folder / name).write_bytes(archive.read(member))
    return ""


def _parquet(path: Path, folder: Path) -> str:
    """Hugging Face keeps an image as a struct of its ``bytes`` and its ``path``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not a Parquet file: {error}", where=path) from error
    images = [
        field.name for field in schema if pa.types.is_struct(field.type) and field.type.get_field_index("bytes") >= 0
    ]
    if len(images) != 1:
        expected, got = "one column of images, with bytes inside", ", ".join(schema.names)
        raise DataError("not a set of images", where=path, expected=expected, got=f"columns {got}")
    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
    plain = [f.name for f in schema if f.name != images[0] and any(test(f.type) for test in tests)]
    rows = list(_rows(file, images[0], plain, folder))
    ids = [name for name, _, _ in rows]
    if not all(ids) or first_double(ids) is not None:  # numbers if the set does not name each of its images
        ids = [f"row-{number:06d}" for number in range(len(rows))]
    columns = [name for name in plain if name != "id"]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["id", *columns])
    for name, (_, temporary, values) in zip(ids, rows, strict=True):
        temporary.rename(folder / f"{name}{temporary.suffix}")
        writer.writerow([name, *(values[column] for column in columns)])
    return table.getvalue() if plain else ""


def _rows(file: Any, image: str, plain: list[str], folder: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """What the set calls each image, the file that it was written to, and the other columns; a few rows at a time."""
    number = 0
    for batch in file.iter_batches(batch_size=64, columns=[image, *plain]):
        for row in batch.to_pylist():
            picture = row.pop(image) or {}
            data = picture.get("bytes") or b""
            suffix = next((suffix for start, suffix in MAGIC.items() if data.startswith(start)), "")
            if not suffix:
                hint = "Images by reference are not fetched: publish them inside the file"
                raise DataError(f"row {number} has no image that is read here", expected="PNG, JPEG or TIFF", hint=hint)
            temporary = folder / f".{number:08d}{suffix}"
            temporary.write_bytes(data)
            yield Path(picture.get("path") or "").stem, temporary, row
            number += 1
