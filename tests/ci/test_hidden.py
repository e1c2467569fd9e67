"""Hidden labels stay hidden: a method that looks for them everywhere finds none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.changed import Touched
from ci.plugin_sandbox import CUBES, PluginData, PluginSandbox
from ci.sandbox import Limits
from ci.sandbox.bubblewrap import _view, label_folders
from neuco_core.contract.checks.plugin import declared_sources
from neuco_core.errors import DataError
from neuco_core.specs import Method, Remote, Task
from tests.ci.helpers import ROOT, Upstream, need_bubblewrap

LABELS = (ROOT / "neuco_tasks/digits/labels.csv").read_text().splitlines()
NEEDLE = "|".join(LABELS[100:104])
# Looks into every file that could hold labels, into the environment and the memory of every process, and asks the
# packages that know them.
SEARCH = f"""
import gzip, importlib, os, re, sys
needle = {NEEDLE!r}.replace("|", "\\n").encode()
files = []
def look(path):
    try:
        data = open(path, "rb").read(8_000_000)
        data = gzip.decompress(data) if data[:2] == b"\\x1f\\x8b" else data
    except (OSError, EOFError, ValueError):
        return
    if needle in data or (len(data) > 100_000 and "digits" in os.path.basename(path) and not path.startswith("/cubes")):
        files.append(path)
roots = globals().get("ROOTS") or ["/"]
for root in roots:
    for folder, folders, names in os.walk(root):
        if folder.startswith(("/proc", "/sys", "/dev")):
            folders[:] = []
            continue
        for name in names:
            if name.endswith((".csv", ".gz", ".json", ".txt", ".npy", ".npz", ".parquet", ".data")):
                look(os.path.join(folder, name))
for pid in [name for name in os.listdir("/proc") if name.isdigit() and roots == ["/"]]:
    for name in ("environ", "cmdline"):
        look(f"/proc/{{pid}}/{{name}}")
    try:
        links = [os.path.realpath(f"/proc/{{pid}}/fd/{{fd}}") for fd in os.listdir(f"/proc/{{pid}}/fd")]
        files += [link for link in links if "labels" in link]
        if os.path.exists(f"/proc/{{pid}}/cwd/neuco_tasks/digits/labels.csv"):
            files.append(f"the folder of {{pid}}")
        if int(pid) not in (os.getpid(),):
            regions = [line.split()[0].split("-") for line in open(f"/proc/{{pid}}/maps") if "rw" in line]
            memory = open(f"/proc/{{pid}}/mem", "rb")
            for start, end in regions:
                memory.seek(int(start, 16))
                if needle in memory.read(min(int(end, 16) - int(start, 16), 1 << 26)):
                    files.append(f"the memory of {{pid}}")
    except (OSError, ValueError, OverflowError):
        pass
files += [name for name, value in os.environ.items() if needle.decode() in value or "labels.csv" in value]
try:
    from sklearn.datasets import load_digits
    files.append(f"scikit-learn has {{len(load_digits().target)}}")
except (ImportError, OSError):
    pass
try:
    from neuco_core import load_task
    files.append(f"load_task gives {{len(load_task('digits_class').labels().ids)}}")
except Exception:
    pass
if files:
    raise RuntimeError(f"FOUND {{files}}")
"""


def test_a_method_that_searches_everywhere_finds_no_labels(upstream: Upstream, tmp_path: Path) -> None:
    boxes = PluginSandbox(upstream.base, tmp_path / "scratch", Limits(memory=2500 << 20))
    (tmp_path / "cubes").mkdir()
    plugin = boxes.plugin("neuco_methods", "averaging", "added")
    ran, _ = boxes.run(plugin, "encode", "-c", SEARCH, **{CUBES[1:]: tmp_path / "cubes"})
    assert ran.ok, ran.output


# What a plugin can see of its surroundings; the names of sources are random, and so are the devices.
LOOK = """
import os, resource, sys
print(open("/proc/1/cmdline").read().replace(chr(0), " "), open("/proc/self/mountinfo").read())
print("SEEN", sys.argv[1:], sorted(os.environ.items()), os.getcwd(), os.getuid())
print("SEEN", [resource.getrlimit(number) for number in range(16)])
print("SEEN", sorted(line.split()[4] for line in open("/proc/self/mountinfo")))
for folder, folders, names in os.walk(f"/tree/{sys.argv[1]}"):
    for name in sorted((*folders, *names)):
        facts = os.stat(os.path.join(folder, name))
        print("SEEN", folder, name, oct(facts.st_mode), facts.st_size * (name in names), facts.st_mtime)
"""


@pytest.mark.parametrize("place", ["neuco_methods/averaging", "neuco_tasks/digits"])
def test_a_plugin_does_not_see_whether_it_is_judged_or_on_main(place: str, upstream: Upstream, tmp_path: Path) -> None:
    """Git checks out a plugin of main, and we that of a pull request: with other modes and times."""
    boxes = PluginSandbox(upstream.base, tmp_path / "scratch", Limits(memory=2500 << 20))
    tree, name = place.split("/")
    boxes.folders[tree][name] = Path(shutil.copytree(upstream.base / place, tmp_path / "main"))
    kept = boxes.plugin(tree, name)
    for path in (kept.folder / "__init__.py", kept.folder):
        os.utime(path, (1e9, 1e9))
    (kept.folder / "__init__.py").chmod(0o755)
    added = PluginData(Touched(tree, name, "added"), upstream.base / place, tmp_path / "made")
    seen = []
    for plugin in (kept, added):
        ran, _ = boxes.run(plugin, "labels1", "-c", LOOK, place)
        assert ran.ok, ran.output
        seen.append([line for line in ran.output.splitlines() if line.startswith("SEEN")])
        words = [word for word in ran.output.split() if "/scratch/" in word]
        assert len(words) > 4
        assert not [word for word in words if any(part in word for part in (name, "kept", "added", "labels1"))]
    assert seen[0] == seen[1]


def test_the_search_finds_labels_where_they_are_not_hidden(upstream: Upstream) -> None:
    """Without this the test above could pass because the search is no good."""
    code = f"ROOTS = {[str(upstream.base / 'neuco_tasks')]!r}\n" + SEARCH
    done = subprocess.run([sys.executable, "-c", code], cwd=upstream.base, capture_output=True, text=True)
    assert "FOUND" in done.stderr
    for place in ("neuco_tasks/digits/labels.csv", "scikit-learn has 1797", "load_task gives 1797"):
        assert place in done.stderr


def test_a_task_sees_the_code_of_others_and_not_their_data(upstream: Upstream, tmp_path: Path) -> None:
    boxes = PluginSandbox(upstream.base, tmp_path, Limits())
    boxes.folders["neuco_tasks"]["more"] = boxes.folders["neuco_tasks"]["digits"]
    mounts = [boxes.mounts(boxes.plugin("neuco_tasks", name)) for name in ("digits", "more")]
    places = [m["/tree/neuco_tasks/digits"] for m in mounts]
    assert [(place / "__init__.py").is_file() for place in places] == [True, True]
    assert [(place / "labels.csv").is_file() for place in places] == [True, False]
    assert len({m["/tree/neuco_methods/averaging"] for m in mounts}) == 1, "what plugins share is copied once"
    method = boxes.mounts(boxes.plugin("neuco_methods", "averaging"))
    assert [place for place in method if place.startswith(("/tree/neuco_tasks", "/tree/neuco_methods"))] == [
        "/tree/neuco_tasks/__init__.py", "/tree/neuco_methods/__init__.py", "/tree/neuco_methods/averaging",
    ]  # fmt: skip


def test_an_encoder_sees_no_card_and_no_tests_because_no_code_key_holds_them(
    upstream: Upstream, tmp_path: Path
) -> None:
    boxes = PluginSandbox(upstream.base, tmp_path, Limits())
    plugin = boxes.plugin("neuco_methods", "averaging")
    code = "import os; print(*sorted(os.listdir('/tree/neuco_methods/averaging')))"
    steps = ("describe", "labels1", "cubes-digits", "encode-averaging-digits-64", "tests")
    seen = {step: boxes.run(plugin, step, "-c", code)[0].output.split() for step in steps}
    assert seen["describe"] == seen["tests"] == ["README.md", "__init__.py", "encoder.py", "test.py"]
    for step in steps[1:-1]:
        assert seen[step] == ["__init__.py", "encoder.py"], step


@pytest.mark.parametrize("conda", ["", "share/miniconda"])
def test_labels_in_the_packages_of_another_python_are_hidden_too(
    conda: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / conda / "lib/python3.9/dist-packages/sklearn/datasets/data"
    for folder in (data, tmp_path / conda / "conda-meta"):
        folder.mkdir(parents=True)
    monkeypatch.setattr("sys.base_prefix", str(tmp_path))
    assert str(data) in label_folders()


def test_environments_in_an_environment_are_hidden_but_for_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_bubblewrap()
    for folder in ("envs/other/lib", "pkgs/packed", "envs/own/lib", "envs/own/envs/inner"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr("sys.base_prefix", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "envs/own"))
    command = ["bwrap", *_view({}, label_folders()), "find", str(tmp_path), "-printf", "%P\n"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert sorted(seen) == ["envs", "envs/own", "envs/own/envs", "envs/own/lib", "pkgs"]


def test_a_method_cannot_declare_labels_that_come_with_scikit_learn() -> None:
    """A task may have its labels there; as weights of a method they would be the answers."""
    remote = Remote("pkg://sklearn/datasets/data/digits.csv.gz", sha256="0" * 64)
    task = Task(id="own", dataset="digits", kind="classification", source=remote, metric="accuracy")
    assert list(declared_sources("neuco_tasks", "own", task)) == [remote]
    with pytest.raises(DataError, match="uses a file from elsewhere"):
        list(declared_sources("neuco_methods", "own", Method(id="own", weights={"labels": remote}, encoder=object)))
