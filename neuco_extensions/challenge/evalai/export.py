"""The rules as EvalAI reads them: ``challenge_config.yaml`` and the files that it names.

Only what teams may know goes in: no task's name, no label, no seed. Names and meanings are those of EvalAI's
documentation (configuration.md), which takes times as UTC.
"""

from __future__ import annotations

import zipfile
from datetime import UTC
from io import BytesIO
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from PIL import Image

from neuco_core.errors import UsageError
from neuco_core.files import write_atomic
from neuco_extensions.challenge.rules import Challenge

# What platforms ask for, as far as the rules know it; hosts write the rest.
PAGES = ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines")


def export(challenge: Challenge, out: Path) -> list[Path]:
    """Write all files that EvalAI needs into a folder that is empty or new; gives them.

    The evaluation is remote: the script is asked for and never run, and annotations are empty.
    """
    if out.exists() and any(out.iterdir()):
        raise UsageError("the folder is not empty", where=out, hint="Name a new one")
    pages = Environment(
        loader=PackageLoader(__package__), autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True
    )
    pages.filters["utc"] = lambda moment: moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    pages.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # YAML would take an escaped pair for two characters

    def filled(template: str, **more: object) -> bytes:
        return pages.get_template(template).render(rules=challenge, pages=PAGES, **more).encode()

    script, logo = BytesIO(), BytesIO()
    with zipfile.ZipFile(script, "w") as packed:
        entry = zipfile.ZipInfo("main.py")  # with a fixed date: the same rules give the same bytes
        packed.writestr(entry, 'def evaluate(*args, **more):\n    raise RuntimeError("see: neuco challenge worker")\n')
    Image.new("RGB", (128, 128), "#2a6f97").save(logo, "PNG")  # hosts put their own in its place
    files = {
        "challenge_config.yaml": filled("challenge_config.yaml.txt"),
        "evaluation_script.zip": script.getvalue(),
        "logo.png": logo.getvalue(),
    }
    for page in PAGES:
        files[f"templates/{page}.html"] = filled(f"{page}.html")
    for name, phase in challenge.phases.items():
        files[f"templates/phase_{name}.html"] = filled("phase.html", name=name, phase=phase)
        files[f"annotations/{name}.json"] = b"{}\n"
    for name, content in files.items():
        write_atomic(out / name, content)
    return [out / name for name in files]
