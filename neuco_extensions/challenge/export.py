"""The rules as other platforms read them: ``challenge_config.yaml`` for EvalAI, ``competition.yaml`` for Codabench.

Only what teams may know goes in: no task's name, no label, no seed. Names and meanings are those of EvalAI's
documentation (configuration.md) and of Codabench's (Yaml-Structure.md, version 2); both take times as UTC.
"""

from __future__ import annotations

import html
import struct
import zipfile
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_extensions.challenge.rules import Challenge, Phase
from neuco_extensions.challenge.seal import read_seal

METRIC = "mean_q"  # the one number that feedback has
FILE_TYPES = ".csv, .parquet, .npz"  # an NPY file has no ids
LOGO = "logo.png"


def export(challenge: Challenge, platform: Literal["evalai", "codabench"], out: Path, *, image: str = "") -> list[Path]:
    """Write all files that a platform needs into a folder that is empty or new; gives them."""
    if out.exists() and any(out.iterdir()):
        raise UsageError("the folder is not empty", where=out, hint="Name a new one")
    if platform == "codabench":
        read_seal(challenge)  # the folder is copied, and cannot be sealed there
    files = evalai_files(challenge) if platform == "evalai" else codabench_files(challenge, image)
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
    files |= {f"templates/phase_{name}.html": _about(name, own).encode() for name, own in challenge.phases.items()}
    files |= {f"annotations/{name}.json": b"{}\n" for name in challenge.phases}
    return {
        "challenge_config.yaml": _yaml(evalai(challenge)),
        "evaluation_script.zip": script.getvalue(),
        LOGO: _logo(),
        **files,
    }


def evalai(challenge: Challenge) -> dict[str, Any]:
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
        "start_date": _time(min(own.start for _, own in phases)),
        "end_date": _time(max(own.end for _, own in phases)),
        "published": False,
        "leaderboard": [{"id": 1, "schema": {"labels": [METRIC], "default_order_by": METRIC}}],
        "challenge_phases": [_evalai_phase(number, name, own) for number, (name, own) in enumerate(phases, 1)],
        "dataset_splits": [
            {"id": number, "name": name, "codename": name} for number, (name, _) in enumerate(phases, 1)
        ],
        "challenge_phase_splits": [
            {
                "challenge_phase_id": number,
                "leaderboard_id": 1,
                "dataset_split_id": number,
                "visibility": 3 if own.visible else 1,
                "leaderboard_decimal_precision": own.digits,
                "is_leaderboard_order_descending": True,
                "show_leaderboard_by_latest_submission": own.ranked == "last",
                "show_execution_time": False,
            }
            for number, (_, own) in enumerate(phases, 1)
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


def codabench_files(challenge: Challenge, image: str) -> dict[str, bytes]:
    """All but the reference data: that is the challenge's folder itself, with its labels and seeds."""
    pages = {f"pages/{name}.html": text.encode() for name, text in _pages(challenge).items()}
    command = "python3 -m neuco_extensions.challenge.codabench /app/input /app/output"
    programs = {f"scoring_{name}/metadata.yaml": _yaml({"command": f"{command} {name}"}) for name in challenge.phases}
    return {"competition.yaml": _yaml(codabench(challenge, image)), LOGO: _logo(), **pages, **programs}


def codabench(challenge: Challenge, image: str) -> dict[str, Any]:
    """``image`` is a container with neuco in it, which the platform runs the scoring in."""
    if not image:
        raise UsageError("Codabench needs a container image with neuco in it", hint="Name it with --image")
    last = {own.ranked for own in challenge.phases.values()} == {"last"}
    return {
        "version": 2,
        "title": challenge.title,
        "description": challenge.title,
        "image": LOGO,
        "terms": "pages/terms_and_conditions.html",
        "docker_image": image,
        "make_programs_available": False,
        "make_input_data_available": False,
        "pages": [{"title": name.replace("_", " "), "file": f"pages/{name}.html"} for name in _pages(challenge)],
        "tasks": [
            {
                "index": number,
                "name": name,
                "scoring_program": f"scoring_{name}/",
                "reference_data": "reference_data/",
            }
            for number, name in enumerate(challenge.phases)
        ],
        "phases": _codabench_phases(challenge),
        "leaderboards": [
            {
                "title": "Results",
                "key": "main",
                "submission_rule": "Force_Last" if last else "Force_Best",
                "hidden": not all(own.visible for own in challenge.phases.values()),
                "columns": [
                    {
                        "title": "mean Q",
                        "key": METRIC,
                        "index": 0,
                        "sorting": "desc",
                        "precision": max(own.digits for own in challenge.phases.values()),
                    }
                ],
            }
        ],
    }


def _codabench_phases(challenge: Challenge) -> list[dict[str, Any]]:
    """In the order of time. Codabench has one phase at a time, and refuses one that starts as the other ends."""
    ordered = sorted(challenge.phases.items(), key=lambda item: item[1].start)
    numbers = {name: number for number, name in enumerate(challenge.phases)}
    found = []
    for place, (name, own) in enumerate(ordered):
        following = ordered[place + 1][1] if place + 1 < len(ordered) else None
        if following and following.start < own.end:
            raise UsageError(f"Codabench allows no phase to start before {name} ends", where=challenge.folder)
        touching = following is not None and following.start == own.end
        found.append(
            {
                "index": place,
                "name": name,
                "description": f"{own.per_day} submissions a day, {own.in_all} in all.",
                "start": _time(own.start),
                "end": _time(own.end - timedelta(seconds=1) if touching else own.end),
                "max_submissions_per_day": own.per_day,
                "max_submissions": own.in_all,
                "accepts_only_result_submissions": True,
                "hide_output": True,
                "hide_score_output": own.feedback == "none",
                "tasks": [numbers[name]],
            }
        )
    return found


def _pages(challenge: Challenge) -> dict[str, str]:
    """What platforms ask for, as far as the rules know it; hosts write the rest."""
    title = html.escape(challenge.title)
    phases = "".join(f"<li>{_about(name, own)}</li>" for name, own in challenge.phases.items())
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


def _yaml(value: Mapping[str, Any]) -> bytes:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120).encode()


def _logo() -> bytes:
    """A plain square of 128 pixels, since both platforms want an image: hosts put their own in its place."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + b"\x2a\x6f\x97" * 128) * 128
    header = struct.pack(">IIBBBBB", 128, 128, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
