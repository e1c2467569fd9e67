"""How much of the core one command passes: its modules and functions, in this process and in its workers.

    python benchmarks/trace.py score --method averaging --suite embedded

The command runs in this process with a registry of its own, so that every cell is scored; ``--again`` runs it a second
time, when every score is on record. Workers count as well: they write down what they pass. A module counts if one of
its functions was called, not if it was only imported.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "NEUCO_TRACE_FOLDER"
CORE = str(ROOT / "neuco_core") + os.sep
# Put on the path of every process of the command, where Python imports it by itself.
HOOK = """
import os, sys, threading
core, seen = {core!r}, set()
file = os.open(os.path.join({folder!r}, f"{{os.getpid()}}.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code not in seen and code.co_filename.startswith(core):
        seen.add(code)
        if code.co_flags & 2 and not code.co_name.startswith("<"):  # no class or module, no comprehension
            os.write(file, f"{{code.co_filename}}\\t{{code.co_qualname}}\\n".encode())  # now: workers are killed
threading.setprofile(profile)
sys.setprofile(profile)
"""


def passed(arguments: list[str], registry: Path, folder: Path) -> set[tuple[str, str]]:
    """The functions of the core that a command passes, each with its file."""
    folder.mkdir()
    hooks = folder / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(HOOK.format(core=CORE, folder=str(folder)))
    environment = dict(os.environ) | {"NEUCO_REGISTRY": str(registry)}
    environment["PYTHONPATH"] = os.pathsep.join([str(hooks), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "neuco_core.cli", *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    lines = [line for path in folder.glob("*.txt") for line in path.read_text().splitlines()]
    return {(name, function) for name, _, function in (line.partition("\t") for line in lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="also the second run, with every score on record")
    parser.add_argument("--list", action="store_true", help="name the modules, with how many functions of each")
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        registry = Path(name) / "registry"
        shutil.copytree(ROOT / "registry" / "suites", registry / "suites")
        for run in ("first", "second") if options.again else ("first",):
            functions = passed(arguments, registry, Path(name) / run)
            modules = sorted({file for file, _ in functions})
            print(f"{run} run: {len(modules)} modules, {len(functions)} functions")
            for module in modules if options.list else ():
                count = sum(file == module for file, _ in functions)
                print(f"  {count:4} {Path(module).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
