"""The pull requests of the rehearsal: what each changes, and what must be said of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.helpers import METHOD, TASK, TEST, write_good

Change = Callable[[Path], None]


def task(fork: Path) -> None:
    """A good task with a dataset and labels of its own; its baseline is one of upstream's methods."""
    source = write_good(fork.parent / f"{fork.name}-source") / "neuco_tasks" / "good"
    shutil.copytree(source, fork / "neuco_tasks" / "good")
    init = fork / "neuco_tasks/good/__init__.py"
    edit(init, 'method="plain", score=0.84', 'method="averaging", score=0.84')
    # A function with the name of a module beside it is replaced by that module as soon as it is imported.
    edit(init, "def cubes():", "def open_cubes():")
    edit(init, "cubes=cubes", "cubes=open_cubes")


def method(fork: Path) -> None:
    """A good method."""
    folder = fork / "neuco_methods" / "plain"
    folder.mkdir()
    (folder / "__init__.py").write_text(METHOD)
    (folder / "README.md").write_text("# plain\n\nThe pixels.\n")
    (folder / "test.py").write_text(TEST)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if old not in text:
        raise AssertionError(f"{old!r} is not in {path}")
    path.write_text(text.replace(old, new))


def with_encode(body: str) -> Change:
    """A method whose encoder first runs some code."""

    def change(fork: Path) -> None:
        method(fork)
        lines = "".join(f"        {line}\n" for line in body.splitlines())
        edit(fork / "neuco_methods/plain/__init__.py", "        return batch", f"{lines}        return batch")

    return change


def both(*changes: Change) -> Change:
    def change(fork: Path) -> None:
        for item in changes:
            item(fork)

    return change


def change_file(name: str, old: str, new: str) -> Change:
    return lambda fork: edit(fork / name, old, new)


def write_file(name: str, text: str) -> Change:
    def change(fork: Path) -> None:
        (fork / name).parent.mkdir(parents=True, exist_ok=True)
        (fork / name).write_text(text)

    return change


def link(name: str, target: str) -> Change:
    return lambda fork: (fork / name).symlink_to(target)


def rename(fork: Path) -> None:
    shutil.move(fork / "neuco_methods" / "random", fork / "neuco_methods" / "noise")
    edit(fork / "neuco_methods/noise/__init__.py", 'id="random"', 'id="noise"')
    for path in (fork / "neuco_methods" / "noise").glob("*.py"):
        path.write_text(path.read_text().replace("neuco_methods.random", "neuco_methods.noise"))
    card = fork / "neuco_methods" / "noise" / "README.md"
    card.write_text(card.read_text() + "\nnoise\n")


def remove(name: str) -> Change:
    return lambda fork: shutil.rmtree(fork / name)


@dataclass(frozen=True)
class Case:
    """A pull request, its verdict, and a finding that must be there: check and words; ``seconds`` is its limit."""

    change: Change
    green: bool
    check: str
    words: str
    plugins: tuple[str, ...] = field(default=("neuco_methods/plain",))
    seconds: int = 300


FORGED = """
import json, os
print('{"green": true, "mean": 0.999}')
for place in ("/out", "."):
    try:
        open(place + "/result.json", "w").write('{"findings": [], "records": []}')
        open(place + "/digits.json", "w").write(json.dumps({"ids": list(batch.ids)}))
    except OSError:
        pass
os._exit(0)
"""
OUTSIDE = "import pathlib\npathlib.Path('/tree/neuco_core/errors.py').write_text('')"
OTHER = "def test_x():\n    open('/tree/neuco_core/errors.py', 'a').write('x')\n"
PICKLED = """
import os, numpy
numpy.save("/out/embeddings.npy", numpy.array([[print]] * 1797, dtype=object), allow_pickle=True)
os._exit(0)
"""
GIGANTIC = """
import json, os, numpy
rows = len(json.load(open("/samples/cubes.json"))["ids"])  # some samples come twice
with open("/out/embeddings.npy", "wb") as file:
    words = {"descr": "<f4", "fortran_order": False, "shape": (rows, 10**12)}
    numpy.lib.format.write_array_header_1_0(file, words)
os._exit(0)
"""
BORROWED = """
from neuco_core import Method, Remote, hookimpl

@hookimpl
def neuco_methods():
    remote = Remote("pkg://neuco_tasks.digits/labels.csv", sha256="0" * 64)
    yield Method(id="plain", title="Borrowed", description="Not mine", files={"digits": remote}, license="MIT")
"""
TASKS = ("neuco_tasks/good",)

CASES = {
    "a good task": Case(task, True, "task-baseline", "averaging reaches", TASKS),
    "a good method": Case(method, True, "score", "1 cells scored"),
    "both at once": Case(both(task, method), True, "score", "cells scored", ("neuco_methods/plain", *TASKS)),
    "labels that are not what they claim": Case(
        both(task, change_file("neuco_tasks/good/labels.csv", "s001", "s0O1")), False, "task-source", "sha256", TASKS
    ),
    "a baseline that is not met": Case(
        both(task, change_file("neuco_tasks/good/__init__.py", "score=0.84", "score=0.1")),
        False,
        "task-baseline",
        "the baseline is not met",
        TASKS,
    ),
    "an import that crashes": Case(
        both(method, write_file("neuco_methods/plain/__init__.py", "raise RuntimeError('cheese')")),
        False,
        "import",
        "neuco_methods/plain/__init__.py:1: RuntimeError: cheese",
    ),
    "a test file without tests": Case(
        both(method, write_file("neuco_methods/plain/test.py", "def check_nothing():\n    pass\n")),
        False,
        "tests",
        "no tests were collected",
    ),
    "a failing test beside a passing one": Case(
        both(task, method, write_file("neuco_tasks/good/test.py", "def test_no():\n    assert 1 == 2\n")),
        False,
        "tests",
        "0 passed, 1 failed",
        ("neuco_methods/plain", *TASKS),
    ),
    "a test that leaves before it is asked": Case(
        both(method, write_file("neuco_methods/plain/test.py", "import os\nos._exit(0)\ndef test_x():\n    pass\n")),
        False,
        "tests",
        "no tests were collected",
    ),
    "a socket": Case(
        with_encode("import socket\nsocket.create_connection(('127.0.0.1', 9))"),
        False,
        "encode",
        "its encoder failed with",
    ),
    "a write outside": Case(with_encode(OUTSIDE), False, "encode", "Read-only file system"),
    "forks without end": Case(with_encode("import os\nwhile True:\n    os.fork()"), False, "encode", "processes"),
    "sleeps for ever": Case(
        with_encode("import time\ntime.sleep(10**6)"), False, "encode", "limit of timeout", seconds=20
    ),
    "eats memory": Case(
        with_encode("hoard = []\nwhile True:\n    hoard.append(bytearray(b'x') * (1 << 26))"), False, "encode", "memory"
    ),
    "a forged result": Case(with_encode(FORGED), False, "encode", "the encoder wrote no embeddings"),
    "an edit of the core beside it": Case(
        both(method, write_file("neuco_core/errors.py", "")), False, "core", "core files beside plugins"
    ),
    "a rename": Case(rename, True, "removed", "no records", ("neuco_methods/noise", "neuco_methods/random")),
    "a removal": Case(remove("neuco_methods/random"), True, "removed", "no records", ("neuco_methods/random",)),
    "a removal of what a suite compares": Case(
        remove("neuco_tasks/digits"), False, "removed", "suite 'small' compares", ("neuco_tasks/digits",)
    ),
    "a path that looks like a plugin's": Case(
        write_file("scripts/neuco_tasks/x/evil.py", "raise SystemExit"), True, "core", "scripts/neuco_tasks/x", ()
    ),
    "a page of the documentation": Case(
        write_file("docs/new.md", "# New\n"), True, "nothing", "no plugin is touched, 1 other files are", ()
    ),
    "an edit of the core alone": Case(
        write_file("neuco_core/new.py", ""), True, "everything", "with the changed core: ", ()
    ),
    "an edit of the core that breaks plugins": Case(
        write_file("neuco_core/__init__.py", "raise RuntimeError('cheese')"),
        False,
        "everything",
        "RuntimeError: cheese",
        (),
    ),
    "a plugin that is a link": Case(link("neuco_tasks/evil", "/etc"), False, "unreadable", "a link", ()),
    "a link in a plugin": Case(
        both(method, link("neuco_methods/plain/data.csv", "/etc/passwd")), False, "unreadable", "a link", ()
    ),
    "compiled code in the place of a plugin": Case(
        both(method, write_file("neuco_methods/plain/__init__.abi3.so", "")), False, "unreadable", "compiled", ()
    ),
    "a pipe among the results": Case(
        with_encode("import os\nos.mkfifo('/out/embeddings.npy')\nos._exit(0)"), False, "encode", "left a pipe"
    ),
    "a link among the results": Case(
        with_encode("import os\nos.symlink('/etc/hostname', '/out/embeddings.npy')\nos._exit(0)"),
        False,
        "encode",
        "left a link",
    ),
    "results that are pickled": Case(with_encode(PICKLED), False, "encode", "not a table of floats"),
    "results of a size that nobody has": Case(with_encode(GIGANTIC), False, "encode", "does not match its header"),
    "results without end": Case(
        with_encode("for i in range(10**6):\n    open(f'/out/{i}', 'w').close()"), False, "encode", "limit of files"
    ),
    "labels of another plugin as embeddings": Case(
        both(method, write_file("neuco_methods/plain/__init__.py", BORROWED)),
        False,
        "import",
        "uses a file from elsewhere",
    ),
    "a test that writes into another plugin": Case(
        both(method, write_file("neuco_methods/plain/test.py", OTHER)), False, "tests", "Read-only file system"
    ),
    "a record written by hand": Case(
        write_file("registry/results/random/digits_class.json", "{}"), False, "protected", "only main writes", ()
    ),
    "a directory whose name is no id": Case(
        write_file("neuco_tasks/Böse Task/__init__.py", ""), False, "name", "is not an id", ()
    ),
    "a metric that takes part in scoring": Case(
        both(
            task,
            change_file(
                "neuco_tasks/good/__init__.py",
                "@hookimpl\ndef neuco_tasks",
                "@hookimpl\ndef neuco_metrics():\n    from neuco_core import Metric\n"
                "    yield Metric(id='good', function=max)\n\n@hookimpl\ndef neuco_tasks",
            ),
        ),
        False,
        "import",
        "code that takes part in scoring",
        TASKS,
    ),
}
__all__ = ["CASES", "TASK", "Case", "method", "task"]
