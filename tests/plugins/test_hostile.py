"""Plugins that end the process, print where they should not, or claim ids of others."""

from __future__ import annotations

import itertools
import signal
import threading
from pathlib import Path

import pytest

from neuco_core.errors import DuplicateIdError, UnknownIdError
from neuco_core.plugins.running import Interrupted
from neuco_core.specs import Task
from tests.command import Said, neuco, python
from tests.plugins.helpers import ONE, Tree


def test_no_command_ends_like_a_success_because_of_one_plugin(tmp_path: Path) -> None:
    """Each way of ending the process is a case of test_broken.py; this is one of them as a user meets it."""
    done = with_plugin(tmp_path, "import os\nos._exit(0)", "score", "--method", "rotten", "--suite", "mini")
    assert (done.code, done.out) == (5, "")
    assert "method 'rotten' cannot be loaded: its plugin 'rotten' failed to import: RuntimeError: it calls" in done.err


def test_a_fork_at_import_does_not_go_on_as_a_second_neuco(tmp_path: Path) -> None:
    done = with_plugin(tmp_path, "import os\nos.fork()\n", "methods", "--json")
    assert done.code == 0
    assert len(done.json) > 10, "two commands would have printed two lists"


def test_a_real_interrupt_is_none_of_the_plugin(tree: Tree) -> None:
    tree.add("slow", "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)")
    with pytest.raises(Interrupted):
        tree.catalog().all(Task)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_forks_and_other_threads_may_end_the_process(tree: Tree) -> None:
    """As multiprocessing does in its children, and a worker's watchdog while a plugin is being imported."""
    tree.add("forks", "import os\nif not os.fork():\n    os._exit(7)\nstatus = os.wait()[1]\n" + ONE.format(id="forks"))
    assert list(tree.catalog().all(Task)) == ["forks"]
    (tree.folder.parent / "waits.py").write_text("import time\ntime.sleep(60)\n")
    code = (
        "import os, threading\nfrom neuco_core.plugins.running import plugin_code\n"
        "threading.Timer(0.05, lambda: os._exit(9)).start()\n"
        "with plugin_code():\n    import waits\n"
    )
    assert python("-c", code, path=tree.folder.parent, timeout=50).code == 9


def test_a_plugin_may_be_loaded_in_a_thread(tree: Tree) -> None:
    tree.add("rotten", "raise KeyboardInterrupt")
    tree.add("good")
    listed: list[str] = []
    thread = threading.Thread(target=lambda: listed.extend(tree.catalog().all(Task)))
    thread.start()
    thread.join()
    assert listed == ["good"]


def with_plugin(folder: Path, source: str, *args: str) -> Said:
    path = folder / "neuco_methods" / "rotten" / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    return neuco(*args, path=folder)


LOUD = """
import ctypes, os, subprocess, sys
from neuco_core import Method, hookimpl

shouted = []

def shout(where):
    shouted.append(where)
    print("print", where)
    os.write(1, f"write {where}\\n".encode())
    ctypes.CDLL(None).printf(f"printf {where}\\n".encode())  # which the C library keeps until the process ends
    subprocess.run(["echo", "echo", where], check=True)
    sys.__stdout__.write(f"dunder {where}\\n")

class Loud:
    def encode(self, batch):
        if "encoder" not in shouted:
            shout("encoder")
        return batch.values.mean(axis=(1, 3, 4))

@hookimpl
def neuco_methods():
    shout("hook")
    yield Method(id="rotten", encoder=Loud)

shout("import")
"""


def test_whatever_a_plugin_prints_stdout_is_ours(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    done = with_plugin(
        tmp_path, LOUD, "embed", "--method", "rotten", "--dataset", "digits", "--out", str(out), "--json"
    )
    assert done.code == 0, done.err
    assert done.json["rows"] == 1797
    for way, where in itertools.product(("print", "write", "printf", "echo", "dunder"), ("import", "hook", "encoder")):
        assert f"{way} {where}\n" in done.err


@pytest.mark.parametrize(
    ("directories", "installed", "working", "refused"),
    [
        (["averaging"], ["averaging_v2"], ["averaging"], ["averaging_v2"]),
        (["averaging"], ["averaging"], ["averaging"], ["averaging"]),
        (["averaging"], ["averaging-v2"], ["averaging"], ["averaging-v2"]),
        (["biomass_mean"], ["biomass"], ["biomass_mean"], ["biomass"]),  # what ships keeps its name
        ([], ["soil", "soil_ph"], ["soil"], ["soil_ph"]),
        ([], ["soil-x", "soil_x_y"], ["soil-x"], ["soil_x_y"]),
        (["soil", "soil_ph"], [], ["soil", "soil_ph"], []),  # directories are reviewed together
        (["soil"], ["soils"], ["soil", "soils"], []),
    ],
)
def test_a_package_cannot_claim_ids_of_another_plugin(
    tree: Tree, directories: list[str], installed: list[str], working: list[str], refused: list[str]
) -> None:
    for name in directories:
        tree.add(name)
    for name in installed:
        module = "acme_" + name.replace("-", "_")
        tree.install(f"acme-{name}", {"neuco.tasks": {name: module}}, {module: ONE.format(id=name)})
    catalog = tree.catalog()
    assert sorted(catalog.all(Task)) == working
    assert sorted(problem.name for problem in catalog.problems()) == refused
    for problem in catalog.problems():
        assert problem.stage == "duplicate"
        assert f"acme-{problem.name} 1.2" in problem.error
        assert "claim the same ids" in problem.error
    for name in working:
        assert tree.catalog().load(Task, name).id == name
    for name in set(refused) - set(working):  # also as the first and only question
        with pytest.raises(DuplicateIdError, match="claim the same ids"):
            tree.catalog().load(Task, name)


def test_packages_for_different_nouns_may_share_a_name(tree: Tree) -> None:
    tree.install("acme-soil", {"neuco.tasks": {"soil": "acme_soil"}}, {"acme_soil": ONE.format(id="soil")})
    source = "from neuco_core import Metric, hookimpl\n@hookimpl\ndef neuco_metrics():\n    return []\n"
    tree.install("acme-metric", {"neuco.metrics": {"soil": "acme_metric"}}, {"acme_metric": source})
    assert tree.catalog().problems() == []


@pytest.mark.parametrize("plugins", [{"soil": ["soil-ph"], "soil_ph": ["soil_ph"]}, {"soil": ["soil-ph", "soil_ph"]}])
def test_ids_that_differ_only_in_hyphens_are_one_id(tree: Tree, plugins: dict[str, list[str]]) -> None:
    """They would share the variable NEUCO_DATASET_SOIL_PH, and be taken for each other by readers."""
    for name, (first, *more) in plugins.items():
        tree.add(name, "".join([ONE.format(id=first), *(ONE.format(id=other).splitlines()[-1] for other in more)]))
    for asked in ("soil-ph", "soil_ph"):
        with pytest.raises(DuplicateIdError, match="tasks 'soil-ph' and 'soil_ph' differ only in - and _") as caught:
            tree.catalog().load(Task, asked)
        assert " and ".join(str(tree.folder / name) for name in plugins) in str(caught.value)
    assert list(tree.catalog().all(Task)) == []


def test_an_id_is_found_under_its_own_spelling_only(tree: Tree) -> None:
    tree.add("soil-x")
    with pytest.raises(UnknownIdError, match="Did you mean 'soil-x'"):
        tree.catalog().load(Task, "soil_x")


LAST = """
import atexit, sys
from neuco_core import Method, hookimpl

atexit.register(print, "goodbye")
sys.stdout.close()
sys.stderr.close()

@hookimpl
def neuco_methods():
    yield Method(id="rotten", encoder=dict)
"""


def test_a_plugin_that_closes_streams_and_prints_at_the_end_spoils_no_json(tmp_path: Path) -> None:
    done = with_plugin(tmp_path, LAST, "methods", "--json")
    assert done.code == 0, done.err
    assert "rotten" in [method["id"] for method in done.json]
    assert done.err == "goodbye\n"
    missing = neuco("show", "none", path=tmp_path)
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("neuco: error: no entry 'none'.")
