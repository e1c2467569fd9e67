"""GEO-Bench: its submissions, its boards of capabilities, and tuning as its protocol asks for it.

Submissions are read and checked, scored with error bars, kept in the registry, and written again; nothing of that needs
pandas.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import BoardKind, Check, Command, Panel, PublishedSource

HERE = "neuco_extensions.geobench"
FILES = "submission.json and runs.csv"


@hookimpl
def neuco_commands() -> Iterator[Command]:
    title = "Check, import, rank and export GEO-Bench submissions"
    yield Command(id="geobench", title=title, command=f"{HERE}.command:geobench")


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    yield BoardKind(
        id="geobench",
        title="Capabilities: interquartile means over sets of tasks, as GEO-Bench has them",
        rank=f"{HERE}.board:rank_cells",
        options={
            "scheme": "tags",
            "normaliser": "none",
            "by": "",
            "aggregation": "pooled",
            "replicates": 2000,
            "tuning": "all",
            "decoder": "all",
            "smallest": 0,  # this and the next in millions of parameters
            "largest": 0,
        },
    )


@hookimpl
def neuco_published() -> Iterator[PublishedSource]:
    yield PublishedSource(id="geobench", boards=f"{HERE}.published:published_submissions")


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    data, template = f"{HERE}.board_sections:capabilities", f"{HERE}:capabilities.html"
    yield Panel(id="geobench-capabilities", title="Capabilities", data=data, template=template)
    profile, template = f"{HERE}.profile", f"{HERE}:profile.html"
    yield Panel(id="geobench-profiles", title="Profiles", data=f"{profile}:profiles_of_board", template=template)
    data = f"{profile}:profile_of_method"
    yield Panel(id="geobench-profile", title="Profile", about="method", data=data, template=template)


@hookimpl
def neuco_checks() -> Iterator[Check]:
    find = f"{HERE}.checks:find_submission"
    yield Check(
        id="geobench-files",
        noun="submission",
        asks=f"{FILES}, and nothing else, each as neuco writes it",
        reason="a submission is data: whoever reads the registry runs nothing of it",
        cure="`neuco geobench import FOLDER` writes both",
        run=f"{HERE}.checks:files",
        find=find,
    )
    yield Check(
        id="geobench-rules",
        noun="submission",
        asks="no fault by the rules of GEO-Bench and by ours",
        reason="what leaves the registry must be taken there",
        cure="`neuco geobench export ID --out FOLDER`, then `neuco geobench check FOLDER` names each fault",
        run=f"{HERE}.checks:rules",
        find=find,
    )
    yield Check(
        id="geobench-origin",
        noun="submission",
        asks="a title, a licence, and where the numbers come from",
        reason="nothing else ties a submitted number to a run",
        cure="fill in title, license, source and code in submission.json",
        run=f"{HERE}.checks:origin",
        find=find,
    )
