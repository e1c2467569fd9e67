"""Whatever a plugin does wrong becomes a line with its name, file and reason, and no other plugin is hurt."""

from __future__ import annotations

import os
import signal

import pytest

from neuco_core.errors import PluginError, UnknownIdError
from neuco_core.specs import Task
from tests.plugins.helpers import ONE, Tree, only_problem

ROTTEN = ONE.format(id="rotten")
HEAD = "from neuco_core import Task, hookimpl\n@hookimpl\ndef neuco_tasks():\n"
MUTE = "class Mute(Exception):\n    def __str__(self):\n        {}\nraise Mute"
FOREVER = "    n = 0\n    while True:\n        n += 1\n        yield Task(id=f'rotten_{n}'"
LOOSE = ROTTEN.replace("@hookimpl", "class Loose(Task):\n    __post_init__ = print\n\n@hookimpl")
LOOSE = LOOSE.replace("yield Task(", "yield Loose(")
SECOND, UNMARKED = f"{ROTTEN}\n\n_first = neuco_tasks\n", f"{ROTTEN}\n\ndef neuco_methods():\n    return []\n"
ENDLESS = ROTTEN.replace("    yield Task(id='rotten'", FOREVER)
OTHER, KIND = ROTTEN.replace("neuco_tasks", "neuco_methods"), ROTTEN.replace("regression", "astrology")
DISGUISE = "class Id(str):\n    def replace(self, *_):\n        return 'rotten'\n"

# What it does → its code, when that is noticed, what is said, and the line of its file, if one is to blame.
BROKEN: dict[str, tuple[str, str, str, int | None]] = {
    "raises": ("import os\nraise RuntimeError('out of\\ncheese')", "import", "RuntimeError: out of cheese", 2),
    "is no Python": ("def broken(:", "import", "SyntaxError", 1),
    "ends": ("import sys; sys.exit(3)", "import", "SystemExit", 1),
    "needs a module": ("import no_such_module", "import", "ModuleNotFoundError", 1),
    "skips itself": ("import pytest\npytest.importorskip('no_such_module')", "import", "Skipped: could not import", 2),
    "raises what is no error": ("raise GeneratorExit('gone')", "import", "GeneratorExit: gone", 1),
    "cannot be shown": (MUTE.format("raise ValueError"), "import", "Mute, without a message", 4),
    "interrupts when shown": (MUTE.format("raise KeyboardInterrupt"), "import", "Mute, without a message", 4),
    "ends when shown": (MUTE.format("__import__('os')._exit(0)"), "import", "Mute, without a message", 4),
    "registers nothing": ("", "register", "no function with @hookimpl, so nothing is registered", None),
    "misspells a hook": (ROTTEN.replace("def neuco_tasks", "def neuco_task"), "register", "neuco_task", None),
    "keeps a second name": (SECOND, "register", "_first is marked with @hookimpl and is no hook; hooks are neuco_", 4),
    "forgets a mark": (UNMARKED, "register", "neuco_methods is a hook without @hookimpl: add it", 9),
    "wants an argument": (ROTTEN.replace("neuco_tasks()", "neuco_tasks(registry)"), "register", "registry", None),
    "raises half-way": (ROTTEN + "    raise KeyError('half-way')\n", "collect", "KeyError: 'half-way'", 7),
    "yields text": (HEAD + "    yield 'soil'", "register", "must yield", 2),
    "returns a number": (HEAD + "    return 3", "register", "must yield", 2),
    "returns a class": (HEAD + "    return Task", "register", "must yield", 2),
    "yields nothing": (HEAD + "    yield None", "register", "must yield", 2),
    "yields a function": (HEAD + "    yield neuco_tasks", "register", "must yield", 2),
    "yields another noun": (OTHER, "register", "neuco_methods must yield Method, not Task", 4),
    "goes round the checks": (LOOSE, "register", "neuco_tasks must yield Task, not Loose", 7),
    "has a bad value": (KIND, "collect", "one of regression, classification, multilabel, got 'astrology'", 6),
    "takes another name": (ONE.format(id="fresh"), "register", "task 'fresh' is outside the plugin 'rotten'", 4),
    "disguises an id": (DISGUISE + ROTTEN.replace("id='rotten'", "id=Id('victim')"), "collect", "bad id", 9),
    "never ends": (ENDLESS, "register", "registers more than 10000 specs: does neuco_tasks ever end?", 4),
    "registers an id twice": (ROTTEN + ROTTEN.strip().splitlines()[-1], "duplicate", "registered twice", 4),
}
EXIT = "RuntimeError: it calls os._exit(0), which would end the whole process"
ENDINGS = {
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise BaseException('gone')": "BaseException: gone",
    "__import__('os')._exit(0)": EXIT,
    "__import__('posix')._exit(0)": EXIT,
    "(lambda again: again(again))(lambda again: again(again))": "RecursionError: maximum recursion depth exceeded",
}
for code, error in ENDINGS.items():
    BROKEN[f"{code}, at import"] = (code, "import", error, 1)
    BROKEN[f"{code}, when asked"] = (f"{HEAD}    {code}\n    yield", "collect", error, 4)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_said_with_its_line(name: str, tree: Tree) -> None:
    source, stage, message, line = BROKEN[name]
    before = os._exit, signal.getsignal(signal.SIGINT)
    path = tree.add("rotten", source)
    problem = only_problem(tree)
    assert (problem.name, problem.stage) == ("rotten", stage)
    assert message in problem.error
    assert line is None or problem.file == f"{path}:{line}"
    assert (os._exit, signal.getsignal(signal.SIGINT)) == before


def test_a_look_up_says_why_a_plugin_cannot_be_loaded(tree: Tree) -> None:
    path = tree.add("rotten", "import os\nraise RuntimeError('cheese')")
    with pytest.raises(PluginError) as caught:
        tree.catalog().load(Task, "rotten_x")
    message = "task 'rotten_x' cannot be loaded: its plugin 'rotten' failed to import: RuntimeError: cheese"
    assert str(caught.value) == f"{message} ({path}:2). Run `neuco plugins`"
    with pytest.raises(UnknownIdError, match="1 broken plugin"):
        tree.catalog().load(Task, "soil")


UNUSABLE = {
    "_draft/__init__.py": "start with '_'",
    "With-Capitals/__init__.py": "must be an id",
    "spa ce/__init__.py": "must be an id",
    "bare/card.md": "no __init__.py, so nothing can be registered",
    "stray.py": "a plugin is a directory; this is a file",
}


@pytest.mark.parametrize("file", UNUSABLE)
def test_what_is_no_plugin_is_reported_not_ignored(tree: Tree, file: str) -> None:
    path = tree.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(ONE.format(id="x"))
    problem = only_problem(tree)
    assert problem.file == str(tree.folder / path.relative_to(tree.folder).parts[0])
    assert UNUSABLE[file] in problem.error


def test_an_entry_point_that_leads_nowhere_or_into_another_group_is_reported(tree: Tree) -> None:
    tree.install("acme", {"neuco.methods": {"soil": "acme"}}, {"acme": ONE.format(id="soil")})
    tree.install("umbra", {"neuco.tasks": {"sand": "umbra_gone:plugin"}}, {})
    gone, misplaced = sorted(tree.catalog().problems(), key=lambda problem: problem.stage)
    assert "without an entry point in the group neuco.tasks" in misplaced.error
    assert gone.error.startswith("ModuleNotFoundError")
    assert "umbra 1.2" in gone.source


def test_a_broken_plugin_is_tried_once_and_what_it_prints_does_not_reach_stdout(
    tree: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.add("rotten", "print('tried')\nraise RuntimeError")
    plugins = tree.plugins()
    plugins.collect("task")
    plugins.collect("method")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "tried\n")
