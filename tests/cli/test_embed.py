"""``neuco embed`` and ``neuco check FILE`` as a person meets them."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

from neuco_core.cli.options import parse_params
from neuco_core.errors import UsageError
from neuco_core.tables.embeddings import make_embeddings, read_embeddings, write_embeddings
from tests import command
from tests.command import neuco_here as neuco

ROOT = Path(__file__).resolve().parents[2]
SHAKY = """
from neuco_core import Method, hookimpl

class Shaky:
    def __init__(self):
        import torch
        self.network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5))

    def encode(self, batch):
        import torch
        return self.network(torch.from_numpy(batch.values)).numpy()

@hookimpl
def neuco_methods():
    yield Method(id="shaky", title="Shaky", encoder=Shaky, requires=("torch",))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def failing(*args: str) -> tuple[int, str]:
    """The exit code and the one line on stderr of a command that must fail."""
    done = neuco(*args)
    (line,) = done.err.strip().splitlines()
    assert line.startswith("neuco: error: ")
    return done.code, line


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_embed_writes_what_can_be_read(suffix: str) -> None:
    result = neuco("embed", "--method", "averaging", "--dataset", "digits", "--out", f"out.{suffix}", "--json")
    answer = result.json
    embeddings = read_embeddings(Path(f"out.{suffix}"))
    assert (answer["rows"], answer["dim"], answer["sha256"]) == (1797, 64, embeddings.sha256)


def test_a_parameter_reaches_the_encoder() -> None:
    args = ("--method", "random", "--dataset", "digits", "--param", "dim=3", "--batch-size", "100")
    assert neuco("embed", *args, "--out", "a.npz").code == 0
    assert read_embeddings(Path("a.npz")).values.shape == (1797, 3)


def test_a_dry_run_tries_a_few_samples_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    args = ("embed", "--method", "averaging", "--dataset", "digits", "--dry-run", "--threads", "2")
    dataset, method, learning, encoding = neuco(*args).out.splitlines()
    assert dataset.startswith("dataset   digits: 1797 samples of 1 band and 1 season, 460.0 kB unpacked, 0 in the")
    assert "averaging on cpu, 2 threads: " in method
    assert method.endswith("MB/s (trial of 16 samples)")
    assert " from 16 samples, at most " in learning  # the scale of the bands
    assert encoding.endswith(" for 1797 samples")
    answer = neuco(*args, "--json").json
    assert (answer["samples"], answer["trial"], answer["learned"], answer["bytes"]) == (1797, 16, 16, 1797 * 8 * 8 * 4)
    assert answer["seconds"] == pytest.approx(1797 / answer["samples_per_second"])
    assert not list(Path().rglob("*.npz"))
    assert failing("embed", "--method", "averaging", "--dataset", "digits")[1].startswith(
        "neuco: error: no file to write"
    )


def test_an_exact_method_is_not_moved_to_another_device() -> None:
    args = ("embed", "--method", "averaging", "--dataset", "digits", "--out", "a.npz", "--device", "cuda")
    assert failing(*args)[1].startswith("neuco: error: method 'averaging' runs on the CPU only: its numbers are exact")


def test_a_file_is_not_overwritten_unless_told() -> None:
    Path("a.csv").write_text("precious")
    args = ("embed", "--method", "random", "--dataset", "digits", "--param", "dim=2", "--out", "a.csv")
    assert failing(*args) == (2, "neuco: error: a.csv: the file already exists. Use --force to replace it")
    assert Path("a.csv").read_text() == "precious"
    assert neuco(*args, "--force").code == 0
    assert len(read_embeddings(Path("a.csv")).ids) == 1797


@pytest.mark.extensions  # which makes the method
def test_a_method_for_thirteen_bands_says_so_before_it_asks_for_a_package() -> None:
    args = ("embed", "--method", "torchgeo_resnet18_moco", "--dataset", "olinda", "--out", "a.csv")
    code, line = failing(*args)
    assert code == 4
    assert "needs 13 bands and dataset 'olinda' has 6: 13 are missing (s2l1c/B01, " in line
    if importlib.util.find_spec("torchgeo") is None:
        code, line = failing(*args[:4], "mini", *args[5:])
        assert (code, "Install them with: python -m pip install --require-hashes" in line) == (6, True)


def test_params_are_read_as_what_they_look_like() -> None:
    assert parse_params(["a=1", "b=1.5", "c=true", "d=x=y", "e="]) == {"a": 1, "b": 1.5, "c": True, "d": "x=y", "e": ""}
    with pytest.raises(UsageError, match="twice"):
        parse_params(["a=1", "a=2"])


def write(path: str, keep: int, dim: int = 4) -> tuple[str, ...]:
    """A file with the first ``keep`` ids of digits; all ids are returned."""
    from neuco_core.plugins.catalog import load_dataset

    cubes = load_dataset("digits").cubes
    assert cubes is not None
    ids = cubes().ids()
    write_embeddings(make_embeddings(ids[:keep], np.ones((keep, dim), np.float32)), Path(path))
    return ids


def test_a_whole_file_is_good() -> None:
    write("a.npz", 1797)
    result = neuco("check", "a.npz", "--dataset", "digits")
    assert (result.code, result.out) == (0, "a.npz: ok: 1797 rows of 4 values for 1797 ids of digits\n")
    answer = neuco("check", "a.npz", "--dataset", "digits", "--json").json[0]
    assert (answer["ok"], answer["problems"], answer["missing"], answer["unknown"]) == (True, [], 0, 0)


def test_missing_ids_are_counted_and_the_first_five_named() -> None:
    ids = write("a.parquet", 1790)
    code, line = failing("check", "a.parquet", "--dataset", "digits")
    names = ", ".join(ids[1790:1795])
    assert (code, line) == (4, f"neuco: error: a.parquet: 7 of 1797 ids are missing: the first are {names}")
    result = neuco("check", "a.parquet", "--dataset", "digits", "--json")
    (answer,) = json.loads(result.out)
    assert (result.code, answer["ok"], answer["missing"]) == (4, False, 7)
    assert answer["first_missing"] == list(ids[1790:1795])


def test_dimension_and_numbers_are_checked() -> None:
    ids = write("wide.npz", 1797, dim=1030)
    code, line = failing("check", "wide.npz", "--dataset", "digits")
    assert (code, "1030 dimensions; at most 1024 are allowed" in line) == (4, True)
    rows = "\n".join(f"{name},1,{'' if i == 3 else 2}" for i, name in enumerate(ids))
    Path("holes.csv").write_text("id,0,1\n" + rows + "\n")
    code, line = failing("check", "holes.csv", "--dataset", "digits")
    assert (code, "1 values are missing or not numbers" in line) == (4, True)
    Path("inf.csv").write_text("id,0\n" + "\n".join(f"{name},inf" for name in ids) + "\n")
    code, line = failing("check", "inf.csv", "--dataset", "digits")
    assert (code, "finite" in line) == (4, True)


def test_ids_that_the_dataset_does_not_know_are_told_and_no_fault() -> None:
    ids = write("a.npz", 1797)
    more = make_embeddings((*ids, "stranger"), np.ones((1798, 2), np.float32))
    write_embeddings(more, Path("more.npz"))
    result = neuco("check", "more.npz", "--dataset", "digits")
    assert result.code == 0
    assert "1 rows belong to no sample of it (stranger)" in result.out


def test_a_network_left_in_training_mode_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers depend on chance or on the batch; ``evaluate`` of a function warns in the same words."""
    (tmp_path / "neuco_methods" / "shaky").mkdir(parents=True)
    (tmp_path / "neuco_methods" / "shaky" / "__init__.py").write_text(SHAKY)
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    warning = "shaky on digits: other numbers for the same images in another batch: "
    scored = command.neuco("score", "--method", "shaky", "--dataset", "digits", "--protocol", "ridge+k=2")
    assert scored.code == 0, scored.text
    assert scored.err.count(warning) == 1, scored.err
    made = command.neuco("embed", "--method", "shaky", "--dataset", "digits", "--fresh", "--out", "a.npz")
    assert made.err.count(warning) == 1, made.err
