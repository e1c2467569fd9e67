"""The contract of a submission to GEO-Bench: a directory of the registry with numbers, and no code."""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path

from neuco_core.contract.contract import Broken, Warn, check
from neuco_core.geobench.exchange import to_folder
from neuco_core.geobench.submission import ABOUT, RUNS, Submission, read_submission, submissions_dir
from neuco_core.geobench.validate import validate
from neuco_core.paths import layers, registry_dir
from neuco_core.text import counted


class SubmissionSubject:
    """A submission's directory; it is read when a check needs it."""

    noun = "submission"

    def __init__(self, folder: Path) -> None:
        self.folder, self.id = folder, folder.name

    @cached_property
    def submission(self) -> Submission:
        return read_submission(self.folder)


def find_submission(name: str) -> SubmissionSubject | None:
    """A submission by its id in the registry, or by its directory."""
    folders = [Path(name), *(submissions_dir(layer) / name for layer in layers(registry_dir()))] if name else []
    return next((SubmissionSubject(folder.resolve()) for folder in folders if (folder / ABOUT).is_file()), None)


@check(
    "submission-files",
    "submission",
    asks=f"{ABOUT} and {RUNS}, and nothing else, each as neuco writes it",
    reason="a submission is data: whoever reads the registry runs nothing of it",
    cure="`neuco geobench import FOLDER` writes both",
)
def files(subject: SubmissionSubject) -> str:
    further = sorted(path.name for path in subject.folder.iterdir() if path.name not in (ABOUT, RUNS))
    if further:
        raise Broken("further files", where=subject.folder, got=", ".join(further))
    found = subject.submission
    return f"{counted(len(found.backbones), 'backbone')}, {counted(sum(len(own.scores) for own in found.runs), 'run')}"


@check(
    "submission-rules",
    "submission",
    asks="no fault by the rules of GEO-Bench and by ours",
    reason="what leaves the registry must be taken there",
    cure="`neuco geobench export ID --out FOLDER`, then `neuco geobench validate FOLDER` names each fault",
)
def rules(subject: SubmissionSubject) -> str:
    with tempfile.TemporaryDirectory() as folder:
        faults = validate(to_folder(subject.submission, Path(folder) / "out"))
    if faults:
        raise Broken(f"{counted(len(faults), 'fault')}: {'; '.join(map(str, faults[:3]))}")
    return "no faults"


@check(
    "submission-origin",
    "submission",
    asks="a title, a licence, and where the numbers come from",
    reason="nothing else ties a submitted number to a run",
    cure=f"fill in title, license, source and code in {ABOUT}",
)
def origin(subject: SubmissionSubject) -> str:
    about = subject.submission.about
    if lacks := [name for name in ("title", "license") if not getattr(about, name).strip()]:
        raise Broken(f"no {' and no '.join(lacks)}", where=subject.folder / ABOUT)
    if not (about.source or about.code or about.paper):
        raise Warn("neither source nor code nor paper is named: the numbers are a claim", where=subject.folder / ABOUT)
    return f"{about.license}, {about.source or about.code or about.paper}"
