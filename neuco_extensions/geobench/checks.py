"""The contract of a submission to GEO-Bench: a directory of the registry with numbers, and no code."""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path

from neuco_core.contract.contract import Broken, Warn
from neuco_core.contract.subjects import Subject
from neuco_core.env import layers, registry_dir
from neuco_core.text import counted
from neuco_extensions.geobench.submission import (
    ABOUT,
    RUNS,
    GeobenchSubmission,
    read_submission,
    submissions_dir,
    to_folder,
)
from neuco_extensions.geobench.validate import about_faults, validate


class SubmissionSubject(Subject):
    noun = "submission"

    def __init__(self, folder: Path) -> None:
        self.id, self.directory = folder.name, folder

    @cached_property
    def submission(self) -> GeobenchSubmission:
        return read_submission(self.directory)


def find_submission(name: str) -> SubmissionSubject | None:
    """A submission by its id in the registry, or by its directory."""
    folders = [Path(name), *(submissions_dir(layer) / name for layer in layers(registry_dir()))] if name else []
    return next((SubmissionSubject(folder.resolve()) for folder in folders if (folder / ABOUT).is_file()), None)


def files(subject: SubmissionSubject) -> str:
    further = sorted(path.name for path in subject.directory.iterdir() if path.name not in (ABOUT, RUNS))
    if further:
        raise Broken("further files", where=subject.directory, got=", ".join(further))
    runs = sum(len(line.scores) for line in subject.submission.runs)
    return f"{counted(len(subject.submission.backbones), 'backbone')}, {counted(runs, 'run')}"


def rules(subject: SubmissionSubject) -> str:
    with tempfile.TemporaryDirectory() as folder:
        faults = validate(to_folder(subject.submission, Path(folder) / "out"))
    faults += about_faults(subject.submission.about.title, subject.submission.about.source)
    if faults:
        raise Broken(f"{counted(len(faults), 'fault')}: {'; '.join(map(str, faults[:3]))}")
    return "no faults"


def origin(subject: SubmissionSubject) -> str:
    about = subject.submission.about
    if lacks := [name for name in ("title", "license") if not getattr(about, name).strip()]:
        raise Broken(f"no {' and no '.join(lacks)}", where=subject.directory / ABOUT)
    if not (about.source or about.code or about.paper):
        raise Warn(
            "neither source nor code nor paper is named: the numbers are a claim", where=subject.directory / ABOUT
        )
    return f"{about.license}, {about.source or about.code or about.paper}"
