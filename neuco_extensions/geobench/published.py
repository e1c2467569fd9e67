"""The submissions to GEO-Bench that the registry has, as one published board: a row for each backbone of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from neuco_core.boards.facts import COLUMNS as KNOWN
from neuco_core.boards.model import Column
from neuco_core.boards.published import Published, PublishedRow
from neuco_core.errors import DataError
from neuco_extensions.geobench.facts import DATASETS, KINDS, SOURCE
from neuco_extensions.geobench.iqm import GEOBENCH
from neuco_extensions.geobench.submission import GeobenchSubmission, list_submissions
from neuco_extensions.geobench.validate import same_name

ID = "geobench-2"
SCHEME = "geobench-2"
FACTS = (
    Column("submission", "Submission", "The submission that the row is from", format="choice"),
    Column("tuning", "Tuning", "Whether the backbone was frozen or tuned with the decoder", format="choice"),
    Column("decoder", "Decoder", "What was trained on top of the backbone", format="choice"),
    *(column for column in KNOWN if column.key == "n_parameters"),
)
DESCRIPTION = (
    "Submissions to the GEO-Bench-2 leaderboard: fine-tuned backbones on 19 datasets, five seeds each. A score is the "
    "interquartile mean of the normalised scores of a capability's datasets."
)
UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "B": 1_000_000_000, "G": 1_000_000_000}


def published_submissions(registry: Path) -> list[Published]:
    """The board of all submissions whose datasets are GEO-Bench's, if there are any."""
    board = of_submissions(list_submissions(registry))
    return [board] if board else []


def of_submissions(submissions: Iterable[GeobenchSubmission]) -> Published | None:
    chosen = [item for item in submissions if any(runs.dataset in DATASETS for runs in item.runs)]
    rows = [_row(item, backbone) for item in chosen for backbone in item.backbones]
    if not rows:
        return None
    if twice := [name for name, count in Counter(row.method for row in rows).items() if count > 1]:
        hint = "Name the submission or its backbones otherwise"
        raise DataError(
            "two rows of one name", where=", ".join(sorted(item.about.id for item in chosen)), got=twice[0], hint=hint
        )
    return Published(
        schema=2,
        id=ID,
        title="GEO-Bench-2",
        kind="geobench",
        description=DESCRIPTION,
        citation="; ".join(f"{item.about.title} ({item.about.license})" for item in chosen),
        source=SOURCE,
        rows=tuple(rows),
        tasks=tuple(DATASETS),
        metrics=dict(DATASETS),
        kinds={dataset: KINDS[metric] for dataset, metric in DATASETS.items()},
        fact_columns=FACTS,
        options={"scheme": SCHEME, "normaliser": GEOBENCH},
    )


def row_id(submission: str, backbone: str) -> str:
    """The name of a row; an id has at most 64 characters."""
    return f"{same_name(backbone)[: 63 - len(submission)]}-{submission}"


def _row(submission: GeobenchSubmission, backbone: str) -> PublishedRow:
    about, by_dataset = submission.about, {r.dataset: r for r in submission.runs if r.backbone == backbone}
    model = about.models.get(backbone)
    title = model.title if model and model.title else backbone
    decoders = ", ".join(sorted({runs.decoder for runs in by_dataset.values()}))
    facts: dict[str, str | int | float | None] = {"submission": about.id, "tuning": about.tuning, "decoder": decoders}
    size = parameters(model.size) if model else None
    if size:
        facts["n_parameters"] = size
    return PublishedRow(
        method=row_id(about.id, backbone),
        title=f"{title} · {about.id}",
        name=f"{backbone}, submission {about.id}: {about.title}",
        baseline=False,
        runs=tuple(by_dataset[dataset].scores if dataset in by_dataset else () for dataset in DATASETS),
        facts=facts,
    )


def parameters(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([KMBG]?)", text.strip().upper())
    return round(float(match[1]) * UNITS[match[2]]) if match else None
