"""Embeddings of main's encoders are published once; a pull request with a task then encodes nothing of theirs."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ci.describe import describe_all
from ci.embeddings import Entry, Store, made_from, push_index, read_index, write_index
from ci.judge import Judge
from ci.plugin_sandbox import PluginSandbox
from ci.report import parse
from ci.sandbox import Limits
from tests.ci.helpers import ROOT, Upstream, ci, fresh_cache
from tests.ci.prs import write_file
from tests.ci.test_sandbox import need_bubblewrap
from tests.contract.helpers import TEST
from tests.fetch.s3_server import KEY, SECRET, S3Server

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


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3")) as running:
        running.bucket("main")
        yield running


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


def numbers(report: Any) -> dict[tuple[str, str, str], Any]:
    """What a record says, but for when and how fast it was made."""
    _, records = parse(report.to_bytes())
    return {record.key: (record.fingerprint, record.per_split, record.inputs["embeddings"]) for record in records}


@pytest.mark.slow
def test_a_task_encodes_nothing_that_main_has_published(
    own_upstream: Upstream, s3: S3Server, steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_bubblewrap()
    base = own_upstream.base
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NEUCO_CACHE", fresh_cache(tmp_path / "cache"))
    fork = own_upstream.pull_request("parity", parity)
    before = Judge(base, fork, "origin/main", Limits(), "bubblewrap").run()
    assert [finding for finding in before.findings if finding.status == "failed"] == []
    encoded = sorted(step for step in steps if step.startswith("encode"))
    assert encoded == [f"encode-{name}-digits-64" for name in METHODS]

    login = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
    filled = ci(base, "embeddings", "--upload", "s3://main/embeddings/", **login)
    assert (filled.returncode, filled.stdout.count("1797 rows of")) == (0, 3), filled.stdout + filled.stderr
    again = ci(base, "embeddings", "--upload", "s3://main/embeddings/", **login)
    assert again.stdout.splitlines()[1:] == [f"{name}/digits: there already" for name in METHODS]
    index = read_index(base / "registry")
    assert {entry.content for entry in index.values()} == {row[2] for row in numbers(before).values()}

    steps.clear()
    after = Judge(base, fork, "origin/main", Limits(), "bubblewrap").run()
    assert (before.green, after.green) == (True, True)
    assert [step for step in steps if step.startswith(("encode", "cubes"))] == []
    assert numbers(after) == numbers(before)
    assert [f.detail for f in after.general if f.check == "stored-embeddings"] == [
        "taken from the store: averaging/digits, averaging_notebook/digits, random/digits"
    ]


@pytest.mark.slow
def test_what_does_not_fit_is_not_used_and_is_named(upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
    out = tmp_path / "files"
    repo = Path(shutil.copytree(upstream.base, tmp_path / "repo"))
    options = ("--method", "averaging", "--out", str(out), "--url", out.as_uri())
    done = ci(repo, "embeddings", *options)
    assert done.returncode == 0, done.stderr
    (name,) = index = read_index(repo / "registry")
    assert name == "averaging/digits"
    boxes = PluginSandbox(repo, tmp_path / "scratch", Limits(), "bubblewrap")
    plugins = describe_all(boxes)
    methods = next(plugin for plugin in plugins if plugin.touched.name == "averaging")
    owner = next(plugin for plugin in plugins if plugin.touched.name == "digits")
    method, dataset = next(m for m in methods.methods if m.id == "averaging"), owner.datasets[0]
    entry: Entry = index[name]
    assert made_from(methods, method, dataset) == entry.made_from

    def supplied(changed: Entry, who: Any = methods, of: Any = method) -> str:
        store = Store({name: changed})
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


def test_two_runs_that_push_the_index_keep_each_others_entries(own_upstream: Upstream) -> None:
    """Making the embeddings takes hours, so another run may well have pushed its own meanwhile."""
    first, second, gone = (Entry(name, "content", "https://example.org/x", "0" * 64, 1) for name in "abc")
    repo = own_upstream.clone("repo")
    write_index(repo / "registry", {"gone/mini": gone})
    assert push_index(repo) == "pushed to main"
    clones = [own_upstream.clone(name) for name in ("one", "two")]
    write_index(clones[0] / "registry", {"gone/mini": gone, "first/mini": first})
    write_index(clones[1] / "registry", {"second/mini": second})
    assert [push_index(clone) for clone in clones] == ["pushed to main"] * 2
    assert read_index(own_upstream.clone("after") / "registry") == {"first/mini": first, "second/mini": second}
