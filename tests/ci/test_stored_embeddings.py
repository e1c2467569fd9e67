"""Embeddings of main's encoders are published once; a pull request with a task then encodes nothing of theirs."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ci.describe import describe_all
from ci.embeddings import PublishedEmbeddings, Store, made_from, push_index, read_index, write_index
from ci.judge import Judge
from ci.plugin_sandbox import PluginSandbox
from ci.report import Report, parse
from ci.sandbox import Limits
from neuco_core.fetch.cache import hash_file
from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from tests.ci.helpers import ROOT, Upstream, ci, fresh_cache
from tests.ci.prs import write_file
from tests.ci.test_git import bare_with_clone, clone
from tests.ci.test_sandbox import need_bubblewrap
from tests.contract.helpers import TEST

METHODS = ("averaging", "averaging_notebook", "random")
TASK = """
from neuco_core import Baseline, Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    yield Task(
        id="parity", title="Parity", description="Is the digit odd?", dataset="digits", kind="classification",
        license="CC-BY-4.0", citation="10.1234/example",
        source=Remote("pkg://neuco_tasks.parity/labels.csv", sha256="{sha}", size={size}),
        baseline=Baseline(method="averaging", score=0.92, tolerance=0.03, protocol="ridge+k=10"),
    )
"""


def parity(fork: Path) -> None:
    """A task on a dataset of main's."""
    rows = [row.split(",") for row in (ROOT / "neuco_tasks/digits/labels.csv").read_text().splitlines()]
    column = rows[0].index("label")
    text = "id,label\n" + "".join(f"{row[0]},{int(float(row[column])) % 2}\n" for row in rows[1:])
    sha = hashlib.sha256(text.encode()).hexdigest()
    write_file("neuco_tasks/parity/__init__.py", TASK.format(sha=sha, size=len(text)))(fork)
    write_file("neuco_tasks/parity/labels.csv", text)(fork)
    write_file("neuco_tasks/parity/README.md", "# parity\n\nIs the digit odd?\n")(fork)
    write_file("neuco_tasks/parity/test.py", TEST)(fork)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that ran in sandboxes."""
    names: list[str] = []
    inside = PluginSandbox.inside

    def counted(self: PluginSandbox, plugin: Any, step: str, *arguments: str, **read: Path) -> Path:
        names.append(step)
        return inside(self, plugin, step, *arguments, **read)

    monkeypatch.setattr(PluginSandbox, "inside", counted)
    return names


def numbers(report: Report) -> dict[tuple[str, str, str], Any]:
    """What a record says, but for when and how fast it was made."""
    _, records = parse(report.to_bytes())
    return {record.key: (record.fingerprint, record.per_split, record.inputs["embeddings"]) for record in records}


@pytest.mark.slow
def test_a_task_encodes_nothing_that_main_has_published(
    upstream: Upstream, steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_bubblewrap()
    monkeypatch.setenv("NEUCO_CACHE", fresh_cache(tmp_path / "cache"))
    fork = upstream.pull_request("parity", parity)
    base, files = Path(shutil.copytree(upstream.base, tmp_path / "base")), tmp_path / "files"
    before = Judge(base, fork, "origin/main", Limits()).run()
    assert [finding for finding in before.findings if finding.status == "failed"] == []
    assert sorted(step for step in steps if step.startswith("encode")) == [
        f"encode-{name}-digits-64" for name in METHODS
    ]
    for line in ("1797 rows of", "there already"):
        done = ci(base, "embeddings", "--out", str(files), "--url", files.as_uri())
        assert (done.returncode, done.stdout.count(line)) == (0, 3), done.stdout + done.stderr
    index = read_index(base / "registry")
    assert {entry.content for entry in index.values()} == {row[2] for row in numbers(before).values()}
    steps.clear()
    after = Judge(base, fork, "origin/main", Limits()).run()
    assert (before.green, after.green, numbers(after) == numbers(before)) == (True, True, True)
    assert [step for step in steps if step.startswith(("encode", "cubes"))] == []
    assert [f.detail for f in after.general if f.check == "stored-embeddings"] == [
        "taken from the store: averaging/digits, averaging_notebook/digits, random/digits"
    ]


def test_what_does_not_fit_is_not_used_and_is_named(upstream: Upstream, tmp_path: Path) -> None:
    boxes = PluginSandbox(upstream.base, tmp_path / "scratch", Limits())
    owner, methods = describe_all(boxes)[:2]  # digits and averaging, from the catalogue
    method, dataset = methods.methods[0], owner.datasets[0]
    embeddings = make_embeddings(["a", "b"], np.ones((2, 3), np.float32))
    path = tmp_path / "e.npz"
    write_embeddings(embeddings, path)
    write_file(f"made/kept/{owner.touched.folder}/cubes/digits/cubes.json", '{"ids": ["a", "b"]}')(boxes.scratch)
    key, size = made_from(methods, method, dataset), path.stat().st_size
    entry = PublishedEmbeddings(key, embeddings.sha256, path.as_uri(), hash_file(path), size)

    def supplied(changed: PublishedEmbeddings, who: Any = methods, of: Any = method) -> str:
        store = Store({f"{method.label}/digits": changed})
        fits = store.supply(who, of, owner, dataset)
        return "used" if fits else store.notes[0] if store.notes else "not asked"

    zero = "0" * 64
    assert "other code or data" in supplied(msgspec.structs.replace(entry, made_from=zero))
    assert "other code or data" in supplied(entry, of=replace(method, params={"size": 3}))
    assert "not the content on record" in supplied(msgspec.structs.replace(entry, content=zero))
    assert "not the declared file" in supplied(msgspec.structs.replace(entry, sha256=zero))
    assert "averaging/digits are not used" in supplied(msgspec.structs.replace(entry, url="file:///gone.npz"))
    touched = replace(methods, touched=replace(methods.touched, how="changed"))
    assert supplied(entry, who=touched) == "not asked"  # what a pull request touches is encoded
    assert supplied(entry) == "used"
    write_file(f"made/kept/{owner.touched.folder}/cubes/digits/cubes.json", '{"ids": ["b", "a"]}')(boxes.scratch)
    assert "they are of other samples" in supplied(entry)


def test_two_runs_that_push_the_index_keep_each_others_entries(tmp_path: Path) -> None:
    """Making the embeddings takes hours, so another run may well have pushed its own meanwhile."""
    first, second, gone = (PublishedEmbeddings(name, "content", "https://example.org/x", "0" * 64, 1) for name in "abc")
    bare_with_clone(tmp_path)
    write_index(tmp_path / "repo" / "registry", {"gone/mini": gone})
    assert push_index(tmp_path / "repo") == "pushed to main"
    clones = [clone(tmp_path, name) for name in ("one", "two")]
    write_index(clones[0] / "registry", {"gone/mini": gone, "first/mini": first})
    write_index(clones[1] / "registry", {"second/mini": second})
    assert [push_index(path) for path in clones] == ["pushed to main"] * 2
    assert read_index(clone(tmp_path, "after") / "registry") == {"first/mini": first, "second/mini": second}
