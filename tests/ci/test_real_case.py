"""A copy of the case that the project is about: SSL4EO-S12-downstream, its labels at Hugging Face, main's methods.

The folder of cubes has the true layout, names and format with few, small images; the label files come from a server
that speaks as Hugging Face does, and are pinned, but for those of ``crops``. On main are a method whose package is
missing (``torchgeo``), one that fails (``fragile``) and one that is a file (``stored``), with records of its own.
Pull requests about it get three verdicts, each with its reason; what pure functions decide is in ``test_rules``.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ci.comment import render, text
from ci.plugin_sandbox import PluginSandbox
from ci.report import EXIT_CODES, is_waiting, parse
from ci.sandbox import Limits
from ci.score import CellToScore, Material
from neuco_core.specs import Method, Remote, Task
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.ci.helpers import Change, Upstream, change_file, ci, git, need_bubblewrap, plugin_data, write_file
from tests.command import neuco
from tests.contract.helpers import TEST
from tests.fetch.hugging_face import HuggingFace

SAMPLES, SIDE = 120, 8
REPOSITORY = "datasets/embed2scale/SSL4EO-S12-downstream"
HOME = f"hf://{REPOSITORY}@main/"
LABELS = {"biomass_mean": "biomass_mean__regr.csv", "clouds": "clouds_reg__regr.csv", "crops": "crops__regr.csv"}
VARIABLE = "NEUCO_DATASET_SSL4EO_S12_DOWNSTREAM"
KEPT = {
    "neuco_tasks": ("__init__.py", "ssl4eo_s12_downstream", *LABELS),
    "neuco_methods": ("__init__.py", "averaging", "random", "torchgeo"),
}
PROTOCOL = "ridge+k=3"
DIRECT = {"NO_PROXY": "*", "no_proxy": "*", "NEUCO_BACKOFF": "0.01"}  # to the loopback, and no patience
SUITE = f'id = "real"\ntitle = "Real"\nprotocol = "{PROTOCOL}"\n\n[tasks]\nbiomass_mean = 1\nclouds = 1\ncrops = 1\n'
FILE_METHOD = """
from neuco_core import Method, Remote, hookimpl

@hookimpl
def neuco_methods():
    yield Method(
        id="{name}",
        title="{name}",
        description="Made elsewhere",
        license="CC0-1.0",
        files={{"ssl4eo_s12_downstream": Remote("{url}", sha256="{sha256}")}},
    )
"""
ENCODER = """
from neuco_core import Method, hookimpl

class Encoder:
    def encode(self, batch):
        {body}
        return batch.values.mean(axis=(3, 4)).reshape(len(batch.ids), -1)

@hookimpl
def neuco_methods():
    yield Method(id="{name}", title="{name}", description="Means", encoder=Encoder, license="MIT")
"""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def label_table(seed: int, ids: list[str] | None = None) -> bytes:
    """Labels that the cubes explain for the most part; each seed has its own noise."""
    noise = np.random.default_rng(seed).standard_normal(SAMPLES)
    rows = [
        f"{name},{100 * fake.truth(index) + 10 * noise[index]:.4f},{index % 2 == 0},{index % 2 == 1}"
        for index, name in enumerate(ids or fake.sample_ids(SAMPLES))
    ]
    return "\n".join(["id,label,cvpr_earthvision_phase_dev,cvpr_earthvision_phase_eval", *rows, ""]).encode()


def embeddings_file(seed: int) -> bytes:
    """Embeddings of all samples as NPZ: the brightness that the cubes show, and noise."""
    truth = np.array([fake.truth(index) for index in range(SAMPLES)])
    values = np.random.default_rng(seed).standard_normal((SAMPLES, 6)).astype(np.float32)
    values[:, 0] = truth + 0.1 * values[:, 0]
    file = io.BytesIO()
    np.savez(file, ids=np.array(fake.sample_ids(SAMPLES)), values=values)
    return file.getvalue()


def write_method(tree: Path, name: str, code: str, **files: bytes | str) -> None:
    folder = tree / "neuco_methods" / name
    folder.mkdir()
    texts = {"__init__.py": code, "README.md": f"# {name}\n\nOf the rehearsal.\n", "test.py": TEST, **files}
    for file, content in texts.items():
        (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)


class RealCase:
    """Main as a repository, and the dataset's folder."""

    def __init__(self, folder: Path, hub: HuggingFace) -> None:
        self.folder, self.hub = folder, hub
        self.dataset = folder / "SSL4EO-S12-downstream"
        fake.write_folder(self.dataset, count=SAMPLES, files=(), side=SIDE)
        self.upstream = Upstream(folder / "real", kept=KEPT, suites={"real": SUITE}, more=self._complete)

    def _complete(self, tree: Path) -> None:
        """What main has beside the shipped plugins."""
        pins = {
            HOME + name: {"sha256": sha256(data), "size": len(data)}
            for name, data in HUB.items()
            if name in (f"labels/{LABELS[task]}" for task in ("biomass_mean", "clouds"))
        }
        (tree / "registry" / "pins.json").write_text(json.dumps({"pins": pins, "schema": 1}, indent=2) + "\n")
        data = embeddings_file(1)
        code = FILE_METHOD.format(name="stored", url="pkg://neuco_methods.stored/e.npz", sha256=sha256(data))
        write_method(tree, "stored", code, **{"e.npz": data})
        write_method(tree, "fragile", ENCODER.format(name="fragile", body="raise RuntimeError('cheese')"))
        environment = {**DIRECT, "HF_ENDPOINT": self.hub.base, "NEUCO_REGISTRY": str(tree / "registry")}
        scored = ("score", "--method", "stored", "--task", "biomass_mean", "--protocol", PROTOCOL)
        scoring = neuco(*scored, cwd=tree, path=tree, env=environment)
        if scoring.code:
            raise AssertionError(scoring.text)

    def judge(
        self,
        fork: Path,
        report: Path,
        *,
        dataset: bool = False,
        server: bool = True,
        cache: str = "",
    ) -> tuple[int, str]:
        """Exit code and output of ``score-pr``; where there is no ``server``, nobody listens at its address."""
        variables = {**DIRECT, "HF_ENDPOINT": self.hub.base if server else "http://127.0.0.1:9"}
        variables |= {VARIABLE: str(self.dataset)} if dataset else {}
        variables |= {"NEUCO_CACHE": cache} if cache else {}
        limits = ("--seconds", "300", "--memory", "2500")
        done = ci(self.upstream.base, "score-pr", "--head", str(fork), "--out", str(report), *limits, **variables)
        return done.returncode, done.stdout + done.stderr


TASK = """
from neuco_core import Baseline, Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    yield Task(
        id="soil",
        title="Soil",
        description="How bright the ground is",
        dataset="ssl4eo_s12_downstream",
        kind="regression",
        unit="1",
        license="CC-BY-4.0",
        citation="10.1234/example",
        source=Remote("{url}", sha256="{sha256}"),
        baseline=Baseline(method="{baseline}", score=0.9, tolerance=0.1, protocol="ridge+k=3"),
    )
"""
MINE = f"{HOME}embeddings/mine.npz"
# What the repository at Hugging Face holds: label files, small; embeddings by strangers, LFS.
HUB = {f"labels/{name}": label_table(seed) for seed, name in enumerate(LABELS.values())}
HUB |= {"labels/soil__regr.csv": label_table(7), "embeddings/mine.npz": embeddings_file(2)}
SOIL = f"{HOME}labels/soil__regr.csv"


def encoder(fork: Path) -> None:
    write_method(fork, "mine", ENCODER.format(name="mine", body="pass"))


def file_method(fork: Path) -> None:
    """Embeddings that are published at Hugging Face, as LFS."""
    write_method(fork, "mine", FILE_METHOD.format(name="mine", url=MINE, sha256=sha256(HUB["embeddings/mine.npz"])))


def task(
    data: bytes = b"",
    url: str = "pkg://neuco_tasks.soil/labels.csv",
    baseline: str = "stored",
) -> Change:
    """A task whose labels are in the plugin, or at an address."""
    table = data or label_table(7)

    def change(fork: Path) -> None:
        folder = fork / "neuco_tasks" / "soil"
        folder.mkdir()
        code = TASK.format(url=url, sha256=sha256(table), baseline=baseline)
        (folder / "__init__.py").write_text(code)
        (folder / "README.md").write_text("# soil\n\nOf the rehearsal.\n")
        (folder / "test.py").write_text(TEST)
        if url.startswith("pkg://"):
            (folder / "labels.csv").write_bytes(table)

    return change


class Case(NamedTuple):
    """A pull request, the verdict that it deserves, and findings that must be there: check, status and message."""

    change: Change
    verdict: str
    expected: tuple[tuple[str, str, str], ...]
    records: int = 0
    dataset: bool = False
    server: bool = True


NOT_PINNED = ("score", "skipped", "neuco data pin crops")
CASES = {
    "an encoder, the dataset is here": Case(
        encoder,
        "green",
        (("score", "ok", "2 cells scored"), NOT_PINNED, ("method-covers", "ok", "120")),
        2,
        dataset=True,
    ),
    "an encoder, the dataset is elsewhere": Case(
        encoder, "waiting", (("waiting", "skipped", "no local copy of the cubes is known"),)
    ),
    "a file method, the dataset is elsewhere": Case(
        file_method, "green", (("score", "ok", "2 cells scored"), NOT_PINNED), 2
    ),
    "a file method, the servers of the labels and of its own file are down": Case(
        file_method, "waiting", (("waiting", "skipped", "the server cannot be reached"),), server=False
    ),
    "a task, the dataset is here": Case(
        task(baseline="averaging"),
        "green",
        (
            ("task-baseline", "ok", "averaging reaches"),
            ("score", "skipped", "torchgeo"),
            ("score", "skipped", "RuntimeError: cheese"),
        ),
        4,
        dataset=True,
    ),
    "a task whose labels are at Hugging Face, the dataset is elsewhere": Case(
        task(url=SOIL),
        "green",
        (
            ("task-source", "ok", "verified soil__regr.csv"),
            ("task-baseline", "ok", "stored reaches"),
            ("score", "skipped", "no local copy"),
        ),
        1,
    ),
    "a task for samples that nobody has": Case(
        task(data=label_table(7, [sha256(name.encode()) for name in fake.sample_ids(SAMPLES)])),
        "red",
        (("score", "failed", "stored on soil"),),
    ),
    "a change of a task without a pin": Case(
        change_file("neuco_tasks/crops/__init__.py", 'title="', 'title="The '),
        "waiting",
        (("waiting", "skipped", "neuco data pin crops"),),
    ),
    "only the card": Case(
        write_file("neuco_methods/averaging/README.md", "# averaging\n\naveraging and averaging_notebook.\n"),
        "green",
        (("score", "skipped", "only its card or its tests changed"), ("method-files", "ok", "README.md")),
    ),
}
SIGN = {"green": "## ✅", "red": "## ❌", "waiting": "## ⏳"}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCase]:
    need_bubblewrap()
    with HuggingFace(REPOSITORY, HUB) as hub:
        yield RealCase(tmp_path_factory.mktemp("real-case"), hub)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_pull_request_gets_one_of_three_verdicts(name: str, real: RealCase, tmp_path: Path) -> None:
    case = CASES[name]
    fork = real.upstream.pull_request(name.replace(" ", "-").replace(",", ""), case.change)
    path, cache = tmp_path / "report.json", "" if case.server else str(tmp_path / "cache")
    code, output = real.judge(fork, path, dataset=case.dataset, server=case.server, cache=cache)
    report, records = parse(path.read_bytes())
    assert (report.verdict, report.green, code) == (case.verdict, case.verdict == "green", EXIT_CODES[case.verdict]), (
        output
    )
    for check, status, message in case.expected:
        matching = [finding for finding in report.findings if (finding.check, finding.status) == (check, status)]
        assert any(message in finding.detail for finding in matching), f"{check} {status} {message}: {output}"
    assert len([record for record in records if record.ok]) == case.records, output
    assert all(record.provenance["commit"] == report.head and record.provenance["time"] for record in records)
    comment = render(report, records, real.upstream.base / "registry")
    sign = "## ⚠️" if report.core and report.green else SIGN[case.verdict]
    assert comment.splitlines()[2].startswith(sign), comment
    if case.verdict == "waiting":
        (reason, *_) = [text(finding.detail) for finding in report.findings if is_waiting(finding)]
        assert reason in comment.partition("**Next:**")[2]
    assert git(real.upstream.base, "status", "--porcelain") == ""


def test_of_a_method_only_the_file_of_the_dataset_at_hand_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = {f"embeddings/{name}.npz": embeddings_file(seed) for seed, name in enumerate(("here", "there"))}
    files = {Path(name).stem: Remote(HOME + name, sha256=sha256(data)) for name, data in published.items()}
    methods = plugin_data(Method(id="plain", files=files), how="kept")
    source = Remote("pkg://neuco_tasks.own/labels.csv", sha256="0" * 64)
    columns = [
        Task(id=f"own_{name}", dataset=name, kind="regression", source=source, metric="r2") for name in ("here", "else")
    ]
    tasks = plugin_data(*columns, folder="neuco_tasks/own")
    cells = [CellToScore("ridge", methods.methods[0], task, methods, tasks) for task in tasks.tasks]
    with HuggingFace(REPOSITORY, published) as hub:
        for name, value in {**DIRECT, "HF_ENDPOINT": hub.base, "NEUCO_CACHE": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(name, value)
        material = Material(PluginSandbox(tmp_path, tmp_path / "scratch", Limits()), [methods, tasks])
        assert (material.gather(cells), material.missing) == (cells, {})
    assert list(methods.fetched) == [sha256(published["embeddings/here.npz"])]
