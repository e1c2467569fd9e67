"""A copy of the case that the project is about: SSL4EO-S12-downstream, its labels at Hugging Face, main's methods.

The folder of cubes has the true layout, names and format with few, small images; the label files come from a server
that speaks as Hugging Face does, and are pinned, but for those of ``crops``. On main are a method whose package is
missing (``torchgeo``), one that fails (``fragile``) and one that is a file (``stored``), with records of its own.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path

import numpy as np

from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.ci.helpers import Upstream, ci
from tests.ci.hugging_face import HuggingFace
from tests.command import neuco

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
    yield Method(id="{name}", title="{name}", description="Means", encoder=Encoder, license="MIT"{more})
"""
TEST = "def test_something():\n    assert 1 + 1 == 2\n"


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
    """Main as a repository, the dataset's folder, and its judges: main itself, or main with other pins."""

    def __init__(self, folder: Path, hub: HuggingFace) -> None:
        self.folder, self.hub = folder, hub
        self.dataset = folder / "SSL4EO-S12-downstream"
        fake.write_folder(self.dataset, count=SAMPLES, files=(), side=SIDE)
        self.upstream = Upstream(folder / "real", kept=KEPT, suites={"real": SUITE}, more=self._complete)
        self.bases = {"pinned": self.upstream.base}
        for name, change in (("unpinned", lambda pins: pins.clear()), ("mismatch", _another_biomass)):
            base = self.bases[name] = folder / name
            shutil.copytree(self.upstream.base, base)
            path = base / "registry" / "pins.json"
            pins = json.loads(path.read_text())
            change(pins["pins"])
            path.write_text(json.dumps(pins))

    def _complete(self, tree: Path) -> None:
        """What main has beside the shipped plugins."""
        pins = {
            HOME + name: {"sha256": sha256(data), "size": len(data)}
            for name, data in self.hub.files.items()
            if name in (f"labels/{LABELS[task]}" for task in ("biomass_mean", "clouds"))
        }
        (tree / "registry" / "pins.json").write_text(json.dumps({"pins": pins, "schema": 1}, indent=2) + "\n")
        data = embeddings_file(1)
        code = FILE_METHOD.format(name="stored", url="pkg://neuco_methods.stored/e.npz", sha256=sha256(data))
        write_method(tree, "stored", code, **{"e.npz": data})
        write_method(tree, "fragile", ENCODER.format(name="fragile", body="raise RuntimeError('cheese')", more=""))
        environment = {**DIRECT, "HF_ENDPOINT": self.hub.address, "NEUCO_REGISTRY": str(tree / "registry")}
        scored = ("score", "--method", "stored", "--task", "biomass_mean", "--protocol", PROTOCOL)
        scoring = neuco(*scored, cwd=tree, path=tree, env=environment)
        if scoring.code:
            raise AssertionError(scoring.text)

    def judge(
        self,
        fork: Path,
        report: Path,
        *,
        base: str = "pinned",
        dataset: bool = False,
        server: bool = True,
        cache: str = "",
    ) -> tuple[int, str]:
        """Exit code and output of ``score-pr``; where there is no ``server``, nobody listens at its address."""
        variables = {**DIRECT, "HF_ENDPOINT": self.hub.address if server else "http://127.0.0.1:9"}
        variables |= {VARIABLE: str(self.dataset)} if dataset else {}
        variables |= {"NEUCO_CACHE": cache} if cache else {}
        limits = ("--seconds", "300", "--memory", "2500")
        done = ci(self.bases[base], "score-pr", "--head", str(fork), "--out", str(report), *limits, **variables)
        return done.returncode, done.stdout + done.stderr


def _another_biomass(pins: dict[str, dict[str, object]]) -> None:
    """As if the file had been changed after it was pinned."""
    (url,) = [url for url in pins if "biomass" in url]
    pins[url]["sha256"] = "0" * 64


def files_of_the_hub() -> dict[str, bytes]:
    """What the repository at Hugging Face holds: label files, small; embeddings by strangers, LFS."""
    files = {f"labels/{name}": label_table(seed) for seed, name in enumerate(LABELS.values())}
    return {**files, "labels/soil__regr.csv": label_table(7), "embeddings/mine.npz": embeddings_file(2)}
