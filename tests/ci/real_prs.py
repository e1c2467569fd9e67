"""Pull requests for SSL4EO-S12-downstream and what is around it, each with the verdict that it deserves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuco_core.contract.scaffold import CAVEATS, fill
from neuco_tasks.mini.cubes import sample_id
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.ci.prs import both, change_file, edit, remove, write_file
from tests.ci.real_case import (
    ENCODER,
    FILE_METHOD,
    HOME,
    SAMPLES,
    TEST,
    embeddings_file,
    files_of_the_hub,
    label_table,
    sha256,
    write_method,
)

Change = Callable[[Path], None]
TASK = """
from neuco_core import Baseline, Remote, Task, hookimpl

@hookimpl
def neuco_tasks():
    yield Task(
        id="soil",
        title="Soil",
        description="How bright the ground is",
        dataset="{dataset}",
        kind="regression",
        unit="1",
        license="CC-BY-4.0",
        citation="10.1234/example",
        source=Remote("{url}"{sha256}),
        baseline=Baseline(method="{baseline}", score=0.9, tolerance=0.1, protocol="ridge+k=3"),
    )
"""
MINE = f"{HOME}embeddings/mine.npz"
HUB = files_of_the_hub()
SOIL = f"{HOME}labels/soil__regr.csv"


def encoder(body: str = "", more: str = "") -> Change:
    """An encoder of the means of all bands, which first runs some code."""
    code = ENCODER.format(name="mine", body=body or "pass", more=more)
    return lambda fork: write_method(fork, "mine", code)


def file_method(fork: Path) -> None:
    """Embeddings that are published at Hugging Face, as LFS."""
    write_method(fork, "mine", FILE_METHOD.format(name="mine", url=MINE, sha256=sha256(HUB["embeddings/mine.npz"])))


def own_file_method(fork: Path) -> None:
    """Embeddings in the plugin itself."""
    data = embeddings_file(3)
    code = FILE_METHOD.format(name="mine", url="pkg://neuco_methods.mine/e.npz", sha256=sha256(data))
    write_method(fork, "mine", code, **{"e.npz": data})


def task(
    dataset: str = "ssl4eo_s12_downstream",
    data: bytes = b"",
    url: str = "pkg://neuco_tasks.soil/labels.csv",
    sha: str | None = None,
    baseline: str = "stored",
) -> Change:
    """A task whose labels are in the plugin, or at an address with a sha256 or (``sha=""``) without one."""
    table = data or label_table(7)
    pinned = "" if sha == "" else f', sha256="{sha or sha256(table)}"'

    def change(fork: Path) -> None:
        folder = fork / "neuco_tasks" / "soil"
        folder.mkdir()
        code = TASK.format(dataset=dataset, url=url, sha256=pinned, baseline=baseline)
        (folder / "__init__.py").write_text(code)
        (folder / "README.md").write_text("# soil\n\nOf the rehearsal.\n")
        (folder / "test.py").write_text(TEST)
        if url.startswith("pkg://"):
            (folder / "labels.csv").write_bytes(table)

    return change


def mini_task(fork: Path) -> None:
    """A task on mini: the label is how bright the image is."""
    import numpy as np

    from neuco_tasks.mini.cubes import cube

    noise = np.random.default_rng(3).standard_normal(SAMPLES)
    rows = [f"{sample_id(i)},{cube(i).mean() + 10 * noise[i]:.4f}" for i in range(SAMPLES)]
    task("mini", "\n".join(["id,label", *rows, ""]).encode(), baseline="averaging")(fork)
    edit(fork / "neuco_tasks/soil/__init__.py", "score=0.9, tolerance=0.1", "score=0.5, tolerance=0.5")


def set_pin(name: str, digest: str) -> Change:
    def change(fork: Path) -> None:
        path = fork / "registry" / "pins.json"
        pins = json.loads(path.read_text())
        pins["pins"][HOME + name] = {"sha256": digest, "size": len(HUB.get(name, b"x"))}
        path.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n")

    return change


def placeholder(fork: Path) -> None:
    """The card that `neuco new` wrote, as it was."""
    own_file_method(fork)
    words = {"name": "mine", "description": "Made elsewhere", "caveats": CAVEATS["method"], "license": "CC0-1.0"}
    words |= dict.fromkeys(("source_words", "dim_words", "citation_words"), "None.")
    (fork / "neuco_methods/mine/README.md").write_text(fill("method_card.md", words))


@dataclass(frozen=True)
class Case:
    """A pull request; the judge's machine; the verdict, and findings that must be there: check, status and words."""

    change: Change
    verdict: str
    said: tuple[tuple[str, str, str], ...]
    base: str = "pinned"
    dataset: bool = False
    server: bool = True
    records: int = 0


PACKAGE = ("score", "skipped", "torchgeo")
CASES = {
    "an encoder, the dataset is here": Case(
        encoder(),
        "green",
        (
            ("score", "ok", "2 cells scored"),
            ("score", "skipped", "neuco data pin crops"),
            ("method-covers", "ok", "120"),
        ),
        dataset=True,
        records=2,
    ),
    "an encoder, the dataset is elsewhere": Case(
        encoder(), "waiting", (("waiting", "skipped", "no local copy of the cubes is known"),)
    ),
    "an encoder, no labels are pinned": Case(
        encoder(), "waiting", (("waiting", "skipped", "neuco data pin biomass_mean"),), base="unpinned", dataset=True
    ),
    "a file method, the dataset is elsewhere": Case(
        file_method,
        "green",
        (("score", "ok", "2 cells scored"), ("score", "skipped", "neuco data pin crops")),
        records=2,
    ),
    "a file method, no labels are pinned": Case(
        file_method, "waiting", (("waiting", "skipped", "neuco data pin biomass_mean"),), base="unpinned"
    ),
    "a file method, one pin of main does not match": Case(
        own_file_method,
        "green",
        (("score", "ok", "1 cells scored"), ("score", "skipped", "not the declared file")),
        base="mismatch",
        records=1,
    ),
    "a file method, the server of the labels is down": Case(
        own_file_method, "waiting", (("waiting", "skipped", "the server cannot be reached"),), server=False
    ),
    "a file method whose own server is down": Case(
        file_method, "waiting", (("waiting", "skipped", "the server cannot be reached"),), server=False
    ),
    "a task, the dataset is elsewhere": Case(
        task(), "green", (("task-baseline", "ok", "stored reaches"), ("score", "skipped", "no local copy")), records=1
    ),
    "a task, the dataset is here": Case(
        task(baseline="averaging"),
        "green",
        (("task-baseline", "ok", "averaging reaches"), PACKAGE, ("score", "skipped", "RuntimeError: cheese")),
        dataset=True,
        records=4,
    ),
    "a task whose labels are at Hugging Face": Case(
        task(url=SOIL), "green", (("task-source", "ok", "verified soil__regr.csv"),), records=1
    ),
    "a task whose labels nobody has verified": Case(
        task(url=SOIL, sha=""), "red", (("task-source", "failed", "unpinned"),)
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
    "a task on mini, a package of main is missing": Case(
        mini_task, "green", (("score", "ok", "cells scored"), PACKAGE), records=3
    ),
    "a method that needs a missing package": Case(
        encoder(more=', requires=("timm",)'), "red", (("encode", "failed", "needs the package timm"),), dataset=True
    ),
    "only the card": Case(
        write_file("neuco_methods/averaging/README.md", "# averaging\n\naveraging and averaging_notebook.\n"),
        "green",
        (("score", "skipped", "only its card or its tests changed"), ("method-files", "ok", "README.md")),
    ),
    "a card that is not written": Case(
        placeholder, "red", (("card", "failed", "the card still asks: Say here what it was trained on"),), records=2
    ),
    "a test that fails beside test.py": Case(
        both(
            own_file_method,
            write_file("neuco_methods/mine/test_extra.py", "def test_no():\n    assert 'a' * 2000 == 'the end'\n"),
        ),
        "red",
        (("tests", "failed", "1 passed, 1 failed"), ("tests", "failed", "the end")),
        records=2,
    ),
    "a suite": Case(
        write_file(
            "registry/suites/real.toml",
            'id = "real"\ntitle = "Real"\nversion = 2\nprotocol = "ridge+k=5"\n\n[tasks]\nbiomass_mean = 1\n',
        ),
        "green",
        (
            ("suites", "warning", "'clouds', 'crops' are compared no more"),
            ("suites", "warning", "protocol 'ridge+k=3' becomes 'ridge+k=5'"),
        ),
    ),
    "a pin": Case(
        set_pin("labels/crops__regr.csv", sha256(HUB["labels/crops__regr.csv"])),
        "green",
        (("pins", "ok", "crops: verified"), ("pins", "ok", "will be scored")),
    ),
    "a removal of what a suite compares": Case(
        remove("neuco_methods/stored"),
        "waiting",
        (
            ("removed", "warning", "method 'stored' goes, and 1 record (biomass_mean)"),
            ("waiting", "skipped", "--withdraw stored"),
        ),
    ),
    "a removal of another's task": Case(
        remove("neuco_tasks/clouds"), "red", (("removed", "failed", "suite 'real' compares its task 'clouds'"),)
    ),
}
__all__ = ["CASES", "Case"]
