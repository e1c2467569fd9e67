"""NeuCo-Bench's config, old and new; and the pages about it: commands, keys, and the test of every odd corner."""

from __future__ import annotations

import math
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from neuco_core.errors import DataError
from neuco_extensions.bench.command import bench
from neuco_extensions.bench.config import KEYS, ConfigFile, parse_config, read_config
from neuco_extensions.bench.svm import SearchSpace
from tests import console
from tests.bench.helpers import SEARCH
from tests.bench.test_corners import AS_THE_LOOP
from tests.registry import copy_registry

SHARED = {"k_folds": 40, "embedding_dim": 1024, "enable_plots": False, "standardize_embeddings": True}
TRAINING = {"batch_size": 32, "epochs": 20, "learning_rate": 0.001}
FLAT: dict[str, Any] = {**SHARED, **TRAINING, "task_filter": False}
NESTED: dict[str, Any] = {
    **SHARED,
    "probe_type": "linear",
    "probe_params": {**TRAINING, "device": "auto"},
    "store_probes": False,
    "task_filter": None,
}


def test_old_and_new_configs_mean_the_same() -> None:
    before = deepcopy(NESTED)  # NeuCo-Bench takes batch_size out of probe_params, so that later tasks run with another
    old, new = parse_config(FLAT), parse_config(NESTED)
    assert new.source == NESTED == before
    assert old.protocol == new.protocol
    assert (old.protocol.batch_size, old.protocol.embedding_dim) == (32, 1024)
    assert old.file.task_filter is new.file.task_filter is None
    assert old.notes == new.notes == ()


def test_what_is_left_out_is_what_neuco_bench_takes() -> None:
    config = parse_config({"k_folds": 7})
    p = config.protocol
    assert (p.k, p.epochs, p.batch_size, p.lr, p.standardize, p.normalize_labels) == (7, 10, 64, 0.001, True, True)
    assert config.file.enable_plots
    assert not any((config.file.update_leaderboard, config.store_probes, config.file.output_fold_results))
    assert config.hyperparameters == {"epochs": 10, "learning_rate": 0.001, "batch_size": 64}
    config = parse_config({"k_folds": 2, "store_models": True, "task_filter": ["b", "a"]})
    assert config.store_probes  # the older word
    assert config.file.task_filter == ("b", "a")


def test_the_name_of_the_protocol_says_what_differs() -> None:
    assert parse_config({"k_folds": 40, "epochs": 20}).protocol.name == "neuco-2025"
    assert parse_config({"k_folds": 8, "epochs": 20}).protocol.name == "neuco-2025+k=8"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"k_folds": None}, "k_folds is missing"),
        ({"k_folds": 0}, "k_folds"),
        ({"k_folds": True}, "k_folds"),
        ({"k_folds": 2.5}, "k_folds"),
        ({"epochs": "many"}, "epochs.*got 'many'"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"learning_rate": True}, "learning_rate"),
        ({"learning_rate": float("inf")}, "learning_rate"),
        ({"embedding_dim": "all"}, "embedding_dim"),
        ({"normalize_labels": "yes"}, "normalize_labels"),
        ({"task_filter": "biomass"}, "task_filter"),
        ({"task_filter": []}, "task_filter"),
        ({"task_filter": [1]}, "task_filter"),
        ({"probe_type": "forest"}, "probe_type"),
        ({"probe_params": [1]}, "probe_params"),
        ({"probe_params": {"epochs": 0}}, "epochs"),
        ({"epochs": 5, "probe_params": {"epochs": 6}}, "epochs is given twice"),
        ({"probe_type": "svm", "store_probes": True}, "store_probes"),
    ],
)
def test_bad_values_are_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(DataError, match=word):
        parse_config({"k_folds": 3, **change}, "c.yaml")


def test_a_number_that_yaml_takes_for_text(tmp_path: Path) -> None:
    """YAML 1.1 reads 1e-3 as a text; a person means a number."""
    (tmp_path / "c.yaml").write_text("k_folds: 3\nlearning_rate: 1e-3\n")
    assert read_config(tmp_path / "c.yaml").protocol.lr == 0.001


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"k_fold": 5}, "did you mean k_folds?"),
        ({"probe_params": {"epoch": 3}}, "did you mean epochs?"),
        ({"device": "cuda"}, "'cuda' is ignored"),
        ({"probe_params": {"device": "cuda:0"}}, "'cuda:0' is ignored"),
    ],
)
def test_unknown_keys_are_told_not_dropped_in_silence(change: dict[str, Any], note: str) -> None:
    assert note in parse_config({"k_folds": 3, **change}).notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C_start_end": None}, "missing required field `C_start_end`"),
        ({"kernel_degree_list": None}, "missing required field `kernel_degree_list`"),
        ({"C_start_end": [10, 1]}, "bad probe_params.C_start_end"),
        ({"C_start_end": [1, math.inf]}, "bad probe_params.C_start_end"),
        ({"kernel_degree_list": [2.5]}, "Expected `int`, got `float`, at `kernel_degree_list"),
        ({"kernel_degree_list": [1, 2]}, "degree 1"),
        ({"kernel_degree_list": []}, "bad probe_params.kernel_degree_list"),
        ({"epsilon_list": ["a"]}, "at `epsilon_list"),
        ({"opt_params": {"cv": 3}}, "opt_params"),
    ],
)
def test_its_conditions_are_upstreams(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_config({"k_folds": 3, "probe_type": "svm", "probe_params": SEARCH | change}, svm_search="upstream")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n- b\n",
        "k_folds: [",
        "1: 2\n",
        "\tk_folds: 3\n",
        "k_folds: !!python/object/apply:os.getpid []\n",
        "[" * 5000,
        None,
    ],
)
def test_files_that_are_no_config(tmp_path: Path, text: str | None) -> None:
    """Objects are not built from YAML; without a file the option is named."""
    if text is not None:
        (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(DataError, match=r"c\.yaml" if text is not None else "--config"):
        read_config(tmp_path / "c.yaml")


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
