"""Every page does what it says: each command and each piece of Python is run, and the output is as shown.

The README tells the truth: its code runs, its commands exist, its table is the suite's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

import neuco_core
from neuco_core import list_tasks
from neuco_core.cli import data
from neuco_core.encode.run import encode_dataset
from neuco_core.encoders import SEASON_MODES
from neuco_core.errors import EXIT_CODES
from neuco_core.tables.labels import read_labels
from neuco_core.testing import TinyCubes
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests import console
from tests.ci.going_live import copy_project
from tests.ci.helpers import WHO, git
from tests.ci.test_workflows import NAMES, load
from tests.command import neuco
from tests.cubes import pictures
from tests.fetch.helpers import own_settings
from tests.fetch.http_server import FileServer
from tests.fetch.s3_server import KEY, SECRET, S3Server

DOCS = Path(__file__).parents[2] / "docs"
Names = dict[str, Any]


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@contextmanager
def data_world(folder: Path) -> Iterator[dict[str, str]]:
    """For docs/howto/data.md: a Hugging Face server, two buckets, a local copy and a file of labels."""

    def labels(task: str) -> str:  # as published, and different from that of every other task: a row has no label
        rows = "".join(f"{i:064x},{i * 0.25},1\n" for i in range(40))
        return f"id,label,{task}_phase\n{rows}{'f' * 64},,1\n"

    copy = folder / "home" / "data" / "SSL4EO-S12-downstream" / "labels"
    copy.mkdir(parents=True)
    (copy / "clouds_reg__regr.csv").write_text(labels("clouds"))
    fake.write_folder(copy.parent, count=2, files=(), side=4)
    ph = "".join(f"site-{i},{4 + i / 8},10\n" for i in range(40))
    (folder / "ph.csv").write_text(f"id,label,depth\n{ph}site-99,,10\n")
    with FileServer() as server, S3Server(folder / "s3") as s3:
        for task in list_tasks(suite="neuco-real"):
            path = task.source.url.removeprefix("hf://").replace("@", "/resolve/")
            server.http.files[f"/{path}"] = labels(task.id).encode()
        s3.bucket("my-bucket")
        s3.bucket("my-private-bucket", public=False)
        servers = {"HF_ENDPOINT": server.base, "AWS_ENDPOINT_URL": s3.endpoint}
        yield {**servers, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


@contextmanager
def datasets_world(folder: Path) -> Iterator[dict[str, str]]:
    """For docs/howto/add-dataset.md: a folder of GeoTIFFs and a table of labels."""
    (folder / "plots.csv").write_text(pictures.labels(pictures.write_tiffs(folder / "plots"), ".tif"))
    yield {"PYTHONPATH": str(folder), "NEUCO_REGISTRY": str(folder / "registry")}


@contextmanager
def formats_world(folder: Path) -> Iterator[dict[str, str]]:
    """For docs/ref/formats.md: a small copy of the cubes."""
    fake.write_folder(folder / "copy", count=3, side=8)
    yield {"NEUCO_DATASET_SSL4EO_S12_DOWNSTREAM": str(folder / "copy")}


@contextmanager
def maintaining_world(folder: Path) -> Iterator[dict[str, str]]:
    """For docs/maintain/maintaining.md: a checkout, the dataset at home, its labels on a Hugging Face server."""
    copy_project(folder)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "Start")
    copy = folder / "home" / "data" / "SSL4EO-S12-downstream"
    fake.write_folder(copy, count=40, side=8)
    with FileServer() as server:
        for task in list_tasks(suite="neuco-real"):
            path = task.source.url.removeprefix("hf://").replace("@", "/resolve/")
            labels = copy / "labels" / Path(path).name
            if not labels.exists():  # the dataset has one file without the hyphen
                labels = labels.with_name(labels.name.replace("heat-island", "heatisland"))
            server.http.files[f"/{path}"] = labels.read_bytes()
        registry = {"NEUCO_REGISTRY": str(folder / "registry"), "NEUCO_PINS": str(folder / "registry" / "pins.json")}
        yield {"HF_ENDPOINT": server.base, **registry, **WHO}


@contextmanager
def plain_world(folder: Path) -> Iterator[dict[str, str]]:
    yield {}


def see_formats(names: Names) -> None:
    assert names["same"].identical(names["cube"])
    assert names["batch"].seasons == ("spring", "fall")
    assert names["sample"]["image"].shape[1:] == (2, 1, 8, 8)
    assert names["labels"].verified
    assert (names["again"].dim, names["again"].ids) == (2, ("0007", "0009"))


def see_datasets(names: Names) -> None:
    assert names["batch"].values.shape == (2, 1, 4, 8, 8)
    assert (names["cube"].attrs["crs"], names["cube"].x.values[0]) == ("EPSG:32631", 500_245.0)


def see_encoders(names: Names) -> None:
    (method,) = names["neuco_methods"]()
    assert encode_dataset(method, TinyCubes(count=3).dataset(), {}).values.shape == (3, 27)


def see_first_score(names: Names) -> None:
    assert 15 < names["results"].mean_q < 31
    assert list(names["results"].frame().index) == [task.id for task in list_tasks(suite="olinda")]


def see_model(names: Names) -> None:
    assert names["results"].mean_q > names["averaging"].mean_q


# By page: its world, how many commands and pieces of Python it has at least, and what must have come of the Python.
PAGES: dict[str, tuple[Callable[[Path], Any], int, Callable[[Names], None]]] = {
    "howto/data": (data_world, 11, lambda names: None),
    "howto/add-dataset": (datasets_world, 6, see_datasets),
    "ref/formats": (formats_world, 5, see_formats),
    "howto/add-method": (plain_world, 4, see_encoders),
    "maintain/maintaining": (maintaining_world, 8, lambda names: None),
    "first-score": (plain_world, 6, see_first_score),
    "howto/splits-by-place": (plain_world, 2, lambda names: None),
    "your-model": (plain_world, 5, see_model),
}


@pytest.mark.parametrize("name", PAGES)
def test_every_block_runs_and_prints_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, least, see = PAGES[name]
    own_settings(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    names: Names = {public: getattr(neuco_core, public) for public in neuco_core.__all__}
    names |= {"click": click, "__name__": "docs_example"}
    assert len(console.steps(page(name))) >= least
    with world(tmp_path) as settings:
        for variable, value in {"HOME": str(tmp_path / "home"), "COLUMNS": "200", **settings}.items():
            monkeypatch.setenv(variable, value)
        failures = console.play(page(name), tmp_path, {"HOME": str(tmp_path / "home")}, names)
    assert not failures, "\n\n".join(failures)
    see(names)


def test_every_data_command_is_shown() -> None:
    run = [step.command for step in console.steps(page("howto/data")) if not step.python]
    assert [name for name in data.COMMANDS if not any(f"neuco data {name}" in command for command in run)] == []


@pytest.mark.extensions
def test_every_setting_and_exit_code_is_documented(root: Path) -> None:
    text = page("ref/settings")
    sources = [path for package in ("neuco_core", "neuco_extensions") for path in (root / package).rglob("*.py")]
    names = re.compile(r'"((?:NEUCO|HF|EVALAI)_[A-Z_]+)"')
    settings = {name for path in sources for name in names.findall(path.read_text(encoding="utf-8"))}
    assert settings >= {"NEUCO_CACHE", "NEUCO_STRICT", "EVALAI_TOKEN"}
    assert set(re.findall(r"^\| `([A-Z_]+)", text, re.MULTILINE)) == settings
    assert dict(re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)) == {
        str(code): meaning for code, meaning in EXIT_CODES.items()
    }


def test_the_page_on_maintaining_names_every_check_that_a_pull_request_gets_and_every_workflow() -> None:
    text = page("maintain/maintaining")
    judged = [job for name in ("score", "test") for job in load(name)["jobs"].values()]
    for job in judged:
        for python in job.get("strategy", {}).get("matrix", {}).get("python", [""]):
            assert f"`{job['name'].replace('${{ matrix.python }}', python)}`" in text
    assert [name for name in NAMES if f"`{name}`" not in text and f"`{name}.yml`" not in text] == []


def test_pages_that_messages_name_are_there(root: Path) -> None:
    sources = [path for package in ("ci", "neuco_core", "neuco_extensions") for path in (root / package).rglob("*.py")]
    named = {page for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))}
    assert len(named) > 3
    assert [page for page in named if not (root / page).is_file()] == []


def test_the_example_of_a_label_file_is_read_as_the_page_says(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```csv\n(.*?)^```$", page("ref/formats"), re.MULTILINE | re.DOTALL)
    (tmp_path / "x.csv").write_text(example)
    labels = read_labels(tmp_path / "x.csv", "regression")
    assert (labels.ids, labels.dropped) == (("0007", "0009"), {"empty_label": 1})


def test_the_page_on_encoders_names_what_there_is() -> None:
    text = page("howto/add-method")
    method = console.steps(text)[0].command
    assert method.strip().count("\n") <= 10, "a method takes ten lines"
    for name in ("spread_ids", "encode_each", "over_seasons"):
        assert f"`{name}`" in text
        assert callable(getattr(neuco_core.encoders, name))
    modes = re.findall(r"^- `(\w+)`: .*(?:seasons are averaged|season is encoded)", text, re.MULTILINE)
    assert set(modes) == set(SEASON_MODES)


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        (("a … c",), "a b c\n", True),
        (("a … c",), "a b d\n", False),
        (("a", "…", "c"), "a\nb\nb\nc\n", True),
        (("a",), "a\nb\n", False),
        (("x  1", "-  ---"), "x     1\n-  -----\n", True),
    ],
)
def test_the_comparison_itself(expected: tuple[str, ...], output: str, same: bool) -> None:
    assert console.matches(expected, output) is same


@pytest.fixture
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_python_of_the_readme_prints_what_it_shows(readme: str, capsys: pytest.CaptureFixture[str]) -> None:
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.split() == shown.split()


def test_the_readme_is_short(readme: str) -> None:
    assert len(readme.splitlines()) <= 125
    assert len(readme.split()) <= 850


def test_the_commands_of_the_readme_run(readme: str, tmp_path: Path, committed_registry: Path) -> None:
    """Those of the included dataset; test_real_path and test_contributing walk the other two paths."""
    lines = re.findall(r"^neuco (.+?)(?: +#.*)?$", readme.replace("\\\n", ""), re.MULTILINE)
    commands = [shlex.split(line) for line in lines]
    included = [words for words in commands if "olinda" in words]
    assert (len(included), [words[0] for words in commands if words not in included]) == (
        4,
        ["data", "score", "new", "check"],
    )
    for words in included:
        done = neuco(*words, cwd=tmp_path, env={"NEUCO_REGISTRY": str(committed_registry)})
        assert done.code == 0, f"{words}: {done.err}"
