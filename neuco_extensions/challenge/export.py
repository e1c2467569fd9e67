"""The rules as EvalAI reads them: ``challenge_config.yaml`` and the files that it names.

Only what teams may know goes in: no task's name, no label, no seed. Names and meanings are those of EvalAI's
documentation (configuration.md), which takes times as UTC.
"""

from __future__ import annotations

import html
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_extensions.challenge.rules import Challenge, Phase

METRIC = "mean_q"  # the one number that feedback has
FILE_TYPES = ".csv, .parquet, .npz"  # an NPY file has no ids
LOGO = "logo.png"


def export(challenge: Challenge, out: Path) -> list[Path]:
    """Write all files that EvalAI needs into a folder that is empty or new; gives them."""
    if out.exists() and any(out.iterdir()):
        raise UsageError("the folder is not empty", where=out, hint="Name a new one")
    files = evalai_files(challenge)
    for name, content in files.items():
        write_atomic(out / name, content)
    return [out / name for name in files]


def evalai_files(challenge: Challenge) -> dict[str, bytes]:
    """The evaluation is remote: the script is asked for and never run, and annotations are empty."""
    script = BytesIO()
    with zipfile.ZipFile(script, "w") as packed:
        entry = zipfile.ZipInfo("main.py")  # with a fixed date: the same rules give the same bytes
        packed.writestr(entry, 'def evaluate(*args, **more):\n    raise RuntimeError("see: neuco challenge worker")\n')
    files = {f"templates/{name}.html": text.encode() for name, text in _pages(challenge).items()}
    files |= {f"templates/phase_{name}.html": _about(name, phase).encode() for name, phase in challenge.phases.items()}
    files |= {f"annotations/{name}.json": b"{}\n" for name in challenge.phases}
    # Hosts put their own logo in its place.
    logo = BytesIO()
    Image.new("RGB", (128, 128), "#2a6f97").save(logo, "PNG")
    config = evalai_config(challenge)
    return {
        "challenge_config.yaml": yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120).encode(),
        "evaluation_script.zip": script.getvalue(),
        LOGO: logo.getvalue(),
        **files,
    }


def evalai_config(challenge: Challenge) -> dict[str, Any]:
    """Each phase has one split of its own, whose codename is the phase's: that is what the worker answers with."""
    phases = list(challenge.phases.items())
    return {
        "title": challenge.title,
        "short_description": challenge.title[:140],
        **{name: f"templates/{name}.html" for name in _pages(challenge)},
        "image": LOGO,
        "evaluation_script": "evaluation_script.zip",
        "leaderboard_description": "mean Q: the mean over the hidden tasks of NeuCo-Bench's quality score.",
        "remote_evaluation": True,
        "is_docker_based": False,
        "start_date": _time(min(phase.start for _, phase in phases)),
        "end_date": _time(max(phase.end for _, phase in phases)),
        "published": False,
        "leaderboard": [{"id": 1, "schema": {"labels": [METRIC], "default_order_by": METRIC}}],
        "challenge_phases": [_evalai_phase(number, name, phase) for number, (name, phase) in enumerate(phases, 1)],
        "dataset_splits": [
            {"id": number, "name": name, "codename": name} for number, (name, _) in enumerate(phases, 1)
        ],
        "challenge_phase_splits": [
            {
                "challenge_phase_id": number,
                "leaderboard_id": 1,
                "dataset_split_id": number,
                "visibility": 3 if phase.visible else 1,
                "leaderboard_decimal_precision": phase.digits,
                "is_leaderboard_order_descending": True,
                "show_leaderboard_by_latest_submission": phase.ranked == "last",
                "show_execution_time": False,
            }
            for number, (_, phase) in enumerate(phases, 1)
        ],
    }


def _evalai_phase(number: int, name: str, phase: Phase) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "codename": name,
        "description": f"templates/phase_{name}.html",
        "leaderboard_public": phase.visible,
        "is_public": True,
        "is_submission_public": True,
        "start_date": _time(phase.start),
        "end_date": _time(phase.end),
        "test_annotation_file": f"annotations/{name}.json",
        "max_submissions_per_day": phase.per_day,
        "max_submissions_per_month": phase.in_all,
        "max_submissions": phase.in_all,
        "allowed_submission_file_types": FILE_TYPES,
        "is_restricted_to_select_one_submission": False,
        "is_partial_submission_evaluation_enabled": False,
    }


def _pages(challenge: Challenge) -> dict[str, str]:
    """What platforms ask for, as far as the rules know it; hosts write the rest."""
    title = html.escape(challenge.title)
    phases = "".join(f"<li>{_about(name, phase)}</li>" for name, phase in challenge.phases.items())
    size, dim = challenge.limits.bytes, challenge.limits.dim
    return {
        "description": f"<h1>{title}</h1><p>Embeddings of {html.escape(challenge.dataset)} on hidden tasks.</p>",
        "evaluation_details": f"<p>A probe is trained on the embeddings for each hidden task.</p><ul>{phases}</ul>",
        "terms_and_conditions": "<p>Only data is submitted; no code is run.</p>",
        "submission_guidelines": f"<p>One file with an embedding of at most {dim} numbers for each id, of at most "
        f"{size} bytes. Check it with: <code>neuco challenge check FILE --ids IDS</code></p>",
    }


def _about(name: str, phase: Phase) -> str:
    return (
        f"Phase {html.escape(name)}: {_time(phase.start)} to {_time(phase.end)} (UTC), "
        f"{len(phase.tasks)} hidden tasks, {phase.k} splits; {phase.per_day} submissions a day, {phase.in_all} in all."
    )


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
