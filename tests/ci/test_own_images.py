"""Somebody's own images: from a folder to a task on a board, by the commands that a newcomer types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from ci.changed import Touched
from ci.describe import describe
from ci.extract import array_header, make_cubes, read_array
from ci.plugin_sandbox import PluginData, PluginSandbox
from ci.report import Report, parse
from ci.sandbox import Limits
from tests.ci.helpers import Upstream, ci, git, take_kernels
from tests.ci.hugging_face import HuggingFace
from tests.ci.test_sandbox import need_bubblewrap
from tests.command import Said, neuco_here, python
from tests.cubes.pictures import labels, write_pngs, write_tiffs

pytestmark = pytest.mark.slow
WORDS = ("--title", "Own images", "--description", "Small images", "--license", "CC0-1.0", "--caveats", "For a test")
CITED = (*WORDS, "--citation", "arXiv:2510.17914")
COMMANDS = {
    "plots": (
        "neuco new dataset plots --images tif",
        "neuco new task plots_shade --labels tif.csv --unit 1",
    ),
    "scenes": (
        "neuco new dataset scenes --images png",
        "neuco new task scenes_kind --labels png.csv --column class --group-column tile",
    ),
}
MORE = (
    "neuco check plots plots_shade scenes scenes_kind",
    "neuco score --method averaging --task plots_shade --task scenes_kind",
    "git switch --quiet -c own",
    "git add neuco_tasks",
    "git commit --quiet -m Own",
)


class Walk(NamedTuple):
    """The fork, what each command printed, how ``score-pr`` ended and its report."""

    upstream: Upstream
    fork: Path
    printed: dict[str, str]
    ended: Said
    report: Report


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Both folders in one pull request, which is scored once."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("own")
    upstream = Upstream(folder / "upstream")
    fork = upstream.clone("mine")
    take_kernels(fork)
    images = {"tif": write_tiffs(folder / "tif"), "png": write_pngs(folder / "png", count=120)}
    for name, suffix in (("tif", ".tif"), ("png", "")):
        (folder / f"{name}.csv").write_text(labels(images[name], suffix))
    env = {"NEUCO_CACHE": str(folder / "cache"), "NEUCO_REGISTRY": str(fork / "registry")}
    printed = {}
    for line in (*(line for lines in COMMANDS.values() for line in lines), *MORE):
        program, *words = line.split()
        if program == "git":
            git(fork, *words)
            continue
        extra = [*(WORDS if "dataset" in words else CITED), "--into", str(fork)] if words[0] == "new" else []
        arguments = [str(folder / word) if (folder / word).exists() else word for word in words]
        done = python("-m", "neuco_core.cli", *arguments, *extra, cwd=fork, env=env, path=fork)
        assert done.code == 0, done.text
        printed[line] = done.out
    out = folder / "report.json"
    ended = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(out), NEUCO_CACHE=str(folder / "cache"))
    return Walk(upstream, fork, printed, Said(ended.returncode, ended.stdout, ended.stderr), parse(out.read_bytes())[0])


def test_each_folder_takes_fewer_than_ten_commands() -> None:
    for lines in COMMANDS.values():
        assert len(lines) + len(MORE) + 1 < 10  # and `python -m ci score-pr`


def test_what_the_commands_say(walk: Walk) -> None:
    tif, png = COMMANDS["plots"], COMMANDS["scenes"]
    assert "200 images of 8 × 8 pixels" in walk.printed[tif[0]]
    assert "bands     image/B02, image/B03, image/B04, image/B08" in walk.printed[tif[0]]
    assert "places    200 of 200 are georeferenced" in walk.printed[tif[0]]
    assert "bands     image/red, image/green, image/blue" in walk.printed[png[0]]
    assert "protocol ridge: 40 splits" in walk.printed[MORE[1]]


def test_the_pull_request_is_green_and_tells_what_it_does(walk: Walk) -> None:
    assert (walk.ended.code, walk.report.verdict) == (0, "green"), walk.ended.text
    findings = {(plugin.name, finding.check): finding for plugin in walk.report.plugins for finding in plugin.findings}
    assert findings["plots", "dataset-images"].detail == "200 images of 4 bands, 8 × 8 pixels, all read"
    assert findings["scenes", "dataset-metadata"].status == "ok"
    for task in ("plots_shade", "scenes_kind"):
        assert findings[task, "score"].detail == "3 cells scored"
    assert ("plots", "score") not in findings
    steps = [line for line in walk.ended.err.splitlines() if line.startswith("[")]
    for part in ("neuco_tasks/plots: tests", "encode-averaging-scenes-64", "scoring 6 cells"):
        assert any(part in line for line in steps), part


def test_published_images_are_fetched_outside_and_read_inside(
    walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox has no network: what a dataset declares is fetched and verified before."""
    data = (walk.fork / "neuco_tasks/plots/images.zip").read_bytes()
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    with HuggingFace("datasets/somebody/set", {"plots.zip": data}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.hub.address)
        address = "hf://datasets/somebody/set@main/plots.zip"
        made = neuco_here("new", "dataset", "far", "--images", address, *WORDS, "--into", tmp_path)
        assert made.code == 0, made.err
        plugin = PluginData(Touched("neuco_tasks", "far", "added"), tmp_path / "neuco_tasks/far", tmp_path / "made")
        boxes = PluginSandbox(walk.upstream.base, tmp_path / "scratch", Limits())
        describe(boxes, plugin)
        (dataset,) = plugin.datasets
        assert dataset.archives[0].url == address
        folder = make_cubes(boxes, plugin, dataset)
    assert json.loads((folder / "cubes.json").read_text())["ids"][0] == "plot-000"
    assert array_header(folder / "cubes.npy")[0] == (200, 1, 4, 8, 8)
    # What a suspiciously good method is compared with.
    assert len(read_array(folder / "plain.npy", 200)) == 200
