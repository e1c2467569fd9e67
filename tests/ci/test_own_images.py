"""Somebody's own images: from folders to a green pull request. ``docs/howto/add-dataset.md`` shows the commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ci.describe import describe
from ci.extract import array_header, make_cubes, read_array
from ci.plugin_sandbox import PluginSandbox
from ci.report import parse
from ci.sandbox import Limits
from tests.ci.helpers import Upstream, ci, need_bubblewrap, plugin_data
from tests.command import neuco_here
from tests.contract.helpers import quick_neuco
from tests.cubes.pictures import labels, write_pngs, write_tiffs
from tests.fetch.hugging_face import HuggingFace

pytestmark = pytest.mark.slow
WORDS = ("--title", "Own images", "--description", "Small images", "--license", "CC0-1.0", "--caveats", "For a test")
TASKS = (
    "plots_shade --labels {}/tif.csv --unit 1",
    "scenes_kind --labels {}/png.csv --column class --group-column tile",
)


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two datasets with a task each, as the commands write them."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("own")
    (folder / "tif.csv").write_text(labels(write_tiffs(folder / "tif"), ".tif"))
    (folder / "png.csv").write_text(labels(write_pngs(folder / "png", count=120), ""))
    for name, kind in (("plots", "tif"), ("scenes", "png")):
        made = quick_neuco(folder, "new", "dataset", name, "--images", folder / kind, *WORDS, "--into", folder)
        assert made.code == 0, made.text
    for line in TASKS:
        cited = (*WORDS, "--citation", "arXiv:2510.17914", "--into", folder)
        made = quick_neuco(folder, "new", "task", *line.format(folder).split(), *cited)
        assert made.code == 0, made.text
    return folder


def test_the_pull_request_is_green_and_tells_what_it_does(mine: Path, upstream: Upstream, tmp_path: Path) -> None:
    def change(fork: Path) -> None:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(mine / "neuco_tasks", fork / "neuco_tasks", dirs_exist_ok=True, ignore=ignore)

    out = tmp_path / "report.json"
    done = ci(upstream.base, "score-pr", "--head", str(upstream.pull_request("own", change)), "--out", str(out))
    report, _ = parse(out.read_bytes())
    assert (done.returncode, report.verdict) == (0, "green"), done.stdout + done.stderr
    findings = {(plugin.name, finding.check): finding for plugin in report.plugins for finding in plugin.findings}
    assert findings["plots", "dataset-images"].detail == "200 images of 4 bands, 8 × 8 pixels, all read"
    assert findings["scenes", "dataset-metadata"].status == "ok"
    for task in ("plots_shade", "scenes_kind"):
        assert findings[task, "score"].detail == "3 cells scored"
    assert ("plots", "score") not in findings
    steps = [line for line in done.stderr.splitlines() if line.startswith("[")]
    for part in ("neuco_tasks/plots: tests", "encode-averaging-scenes-64", "scoring 6 cells"):
        assert any(part in line for line in steps), part


def test_published_images_are_fetched_outside_and_read_inside(
    mine: Path, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox has no network: what a dataset declares is fetched and verified before."""
    data = (mine / "neuco_tasks/plots/images.zip").read_bytes()
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    with HuggingFace("datasets/somebody/set", {"plots.zip": data}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.base)
        address = "hf://datasets/somebody/set@main/plots.zip"
        made = neuco_here("new", "dataset", "far", "--images", address, *WORDS, "--into", tmp_path)
        assert made.code == 0, made.err
        plugin = plugin_data(folder="neuco_tasks/far", at=tmp_path / "neuco_tasks/far")
        boxes = PluginSandbox(upstream.base, tmp_path / "scratch", Limits())
        describe(boxes, plugin)
        (dataset,) = plugin.datasets
        assert dataset.archives[0].url == address
        folder = make_cubes(boxes, plugin, dataset)
    assert json.loads((folder / "cubes.json").read_text())["ids"][0] == "plot-000"
    assert array_header(folder / "cubes.npy")[0] == (200, 1, 4, 8, 8)
    # What a suspiciously good method is compared with.
    assert len(read_array(folder / "plain.npy", 200)) == 200
