"""The pages about scoring say what the commands do: every command is run, its numbers are compared, every row of the
table of corners has its test, every key and option is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from neuco_extensions.bench.command import bench
from neuco_extensions.bench.config import KEYS, ConfigFile
from neuco_extensions.bench.svm import SearchSpace
from tests import console
from tests.bench.test_corners import AS_THE_LOOP
from tests.registry import copy_registry

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
def test_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words to the letter, and numbers to the last places."""
    monkeypatch.delenv("NEUCO_OFFLINE")
    copy_registry(tmp_path / "registry")
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    text = (DOCS / "howto/score.md").read_text(encoding="utf-8")
    failures = console.play(text, tmp_path, {"HOME": str(tmp_path)}, {})
    assert not failures, "\n\n".join(failures)


def test_every_key_option_and_default_of_bench_is_explained() -> None:
    text = (DOCS / "ref/bench.md").read_text(encoding="utf-8")
    for key in (*KEYS, *SearchSpace.__struct_fields__):
        assert f"`{key}`" in text, key
    assert [option.name for option in bench.params if not getattr(option, "help", "")] == []  # docs/ref/cli.md shows it
    defaults = ConfigFile(k_folds=1)
    assert f"{defaults.batch_size}, {defaults.epochs} and {defaults.learning_rate} if missing" in text
    assert defaults.enable_plots
    assert "true if missing, as in NeuCo-Bench" in text


def test_every_corner_has_its_test() -> None:
    """Each row of the table names a test that is there."""
    text = (DOCS / "why/differences-from-neuco-bench.md").read_text(encoding="utf-8").partition("## Where the two")[2]
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    corners = [row for row in rows if not re.fullmatch(r"\| \*\*.*\*\*(?: \|)+(?: \|)*", row)]
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert len(corners) >= 15
    for row in corners:
        name = re.search(r"\| `(test_\w+)(?:\[(\w+)\])?` \|$", row)
        assert name is not None, row
        assert f"def {name[1]}(" in tests, row
        assert name[2] is None or name[2] in AS_THE_LOOP, row


def test_the_tolerances_are_those_of_the_tests() -> None:
    text = (DOCS / "why/differences-from-neuco-bench.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `pytest (tests/bench/\w+\.py)` \| (\S+) .*? \| (\S+?),?(?: or (\S+))? ?%? \|", text)
    assert [row[0] for row in rows] == ["tests/bench/test_parity.py", "tests/bench/test_shared.py"]
    parity = (DOCS.parent / "tests/scoring/parity.py").read_text()  # whose numbers and tolerances both levels share
    shared = (DOCS.parent / rows[1][0]).read_text()
    assert f"abs={rows[0][1]})" in parity
    assert f"abs={rows[0][2]}, rel={float(rows[0][3]) / 100:.0e}".replace("e-0", "e-") in parity
    assert f"abs={rows[1][1]})" in shared
    assert f"rel={float(rows[1][2]) / 100})" in shared
