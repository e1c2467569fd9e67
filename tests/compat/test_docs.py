"""The pages about scoring say what the commands do: every command is run, every key and option is named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from neuco_core.cli.bench import bench
from neuco_core.compat.neuco_bench.config import SEARCH, TOP
from tests.compat.helpers import neuco

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / "scoring.md").read_text(encoding="utf-8"), re.S)


def commands(block: str) -> list[tuple[str, list[str]]]:
    found = []
    for part in block.split("$ ")[1:]:
        command, _, rest = part.partition("\n")
        found.append((command, rest.splitlines()))
    return found


def masked(line: str) -> str:
    """A line with its numbers, and the blanks and dashes that depend on their width, made alike."""
    return " ".join(re.sub(r"-{3,}", "---", NUMBER.sub("#", line)).split())


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.split("\n")[0][2:40])
def test_commands_print_what_the_page_shows(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEUCO_OFFLINE")
    for command, shown in commands(block):
        name, *args = shlex.split(command)
        assert name == "neuco"
        ran = neuco(*args)
        assert ran.code == 0, ran.err
        if shown == ["…"]:
            continue
        printed = [masked(line) for line in ran.out.splitlines()]
        expected = [masked(line) for line in shown]
        if expected[-1] == "…":
            expected.pop()
            printed = printed[: len(expected)]
        assert printed == expected


@pytest.mark.parametrize("block", blocks("python"))
def test_python_runs(block: str) -> None:
    exec(compile(block, "docs/scoring.md", "exec"), {})


def test_every_key_and_option_of_bench_is_explained() -> None:
    text = (DOCS / "bench.md").read_text(encoding="utf-8")
    for key in (*TOP, *SEARCH):
        assert f"`{key}`" in text, key
    for option in bench.params:
        assert any(f"`{name}`" in text for name in option.opts), option.name


def test_links_between_the_pages() -> None:
    for page in ("scoring.md", "bench.md"):
        for target in re.findall(r"\]\(([^)#]+)", (DOCS / page).read_text(encoding="utf-8")):
            assert (DOCS / target).exists(), target
