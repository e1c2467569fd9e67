"""All faults of a submission at once."""

from __future__ import annotations

from pathlib import Path

from neuco_extensions.geobench.check_info import info_faults
from neuco_extensions.geobench.check_table import table_faults
from neuco_extensions.geobench.check_words import word_faults
from neuco_extensions.geobench.faults import Fault, merged
from neuco_extensions.geobench.folder import Folder, read_folder


def faults_of(folder: Folder, *, official: bool = False) -> list[Fault]:
    """Every fault; with ``official`` only those by which the leaderboard itself would refuse."""
    found = merged([*folder.faults, *table_faults(folder), *info_faults(folder), *word_faults(folder)])
    return [fault for fault in found if fault.official or not official]


def validate(path: Path, *, official: bool = False) -> list[Fault]:
    return faults_of(read_folder(path), official=official)
