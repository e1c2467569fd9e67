"""``neuco new method`` with what is published elsewhere: embeddings on HTTP and S3 servers, weights; large files."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from tests.contract.helpers import neuco, quick_neuco, write_good
from tests.fetch.http_server import FileServer
from tests.fetch.s3_server import KEY, SECRET, S3Server

WORDS = ("--title", "Mine", "--description", "Made elsewhere", "--license", "CC-BY-4.0")
SCORE = ("score", "--method", "mine", "--task", "good", "--protocol", "ridge+k=5")


def packed(rows: int = 150, dim: int = 8, prefix: str = "s") -> bytes:
    buffer = io.BytesIO()
    values = np.random.default_rng(1).standard_normal((rows, dim)).astype("float32")
    np.savez(buffer, ids=np.array([f"{prefix}{i:03d}" for i in range(rows)]), values=values)
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_good(tmp_path)


def new(folder: Path, *args: object) -> tuple[int, str]:
    done = quick_neuco(folder, "new", "method", "mine", *args, *WORDS, "--into", folder)
    return done.code, done.text


def test_embeddings_at_an_address_are_declared_and_stay_there(folder: Path) -> None:
    data = packed()
    with FileServer() as server:
        server.http.files["/lab/mine.npz"] = data
        url = f"{server.base}/lab/mine.npz"
        code, text = new(folder, "--embeddings", url, "--dataset", "good")
        assert (code, "150 of 150 samples of good" in text) == (0, True), text
        scored = neuco(folder, *SCORE)
        assert (scored.code, "1 of 1 scored now" in scored.text) == (0, True), scored.text
    plugin = folder / "neuco_methods" / "mine"
    source = (plugin / "__init__.py").read_text()
    assert [text for text in (url, hashlib.sha256(data).hexdigest(), f"size={len(data)}") if text not in source] == []
    assert sorted(path.name for path in plugin.iterdir() if path.is_file()) == ["README.md", "__init__.py", "test.py"]


def test_from_an_upload_to_a_method(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large for the tree is uploaded, and the address that comes back is all that the plugin has."""
    large = folder / "large.npz"
    large.write_bytes(packed(rows=300, dim=1024))
    (folder / "registry").mkdir()
    (folder / "pyproject.toml").touch()
    code, text = new(folder, "--embeddings", large, "--dataset", "good")
    assert (code, "too large for the tree; expected at most 1 MB, got 1.2 MB" in text) == (2, True), text
    assert f"neuco data upload {large} s3://BUCKET/PREFIX/" in text
    code, text = new(folder, "--embeddings", large, "--dataset", "good", "--package")
    assert code == 0, text  # a distribution of your own may be as large as you like
    with S3Server(folder / "s3") as server:
        server.bucket("mine")
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        login = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
        for name, value in login.items():
            monkeypatch.setenv(name, value)
        uploaded = neuco(folder, "data", "upload", large, "s3://mine/embeddings/")
        assert uploaded.code == 0, uploaded.text
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        (line,) = [line for line in uploaded.out.splitlines() if line.startswith("neuco new method")]
        code, text = new(folder, *line.split()[4:6], "--dataset", "good")
        assert code == 0, text
        scored = neuco(folder, *SCORE)
        assert scored.code == 0, scored.text


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--embeddings", "{url}/other.npz", "--dataset", "good"), 4, "no row is of a sample of good"),
        (("--embeddings", "{url}/gone.npz", "--dataset", "good"), 7, "no such file (HTTP 404)"),
        (("--embeddings", "{url}/text.npz", "--dataset", "good"), 4, "damaged NPZ file"),
        (("--embeddings", "{url}/mine.npz", "--dataset", "good", "--requires", "timm"), 2, "are for an encoder"),
        (("--encoder", "--weights", "checkpoint"), 2, "NAME=ADDRESS"),
        (("--encoder", "--weights", "a-b={url}/mine.npz"), 2, "NAME=ADDRESS"),
        (("--encoder", "--weights", "a={url}/gone.npz"), 7, "no such file (HTTP 404)"),
        (("--encoder", "--requires", "git+https://example.org/x"), 2, "expected NAME or NAME==VERSION"),
        (("--encoder", "--requires", "numpy==1.0"), 2, "one of neuco's own packages"),
    ],
)
def test_what_will_not_do_leaves_nothing_behind(folder: Path, args: tuple[str, ...], code: int, words: str) -> None:
    with FileServer() as server:
        files = {"mine": packed(), "other": packed(prefix="x"), "text": b"not a table"}
        server.http.files |= {f"/lab/{name}.npz": data for name, data in files.items()}
        got, text = new(folder, *(arg.format(url=f"{server.base}/lab") for arg in args))
    assert (got, words in text) == (code, True), text
    assert not (folder / "neuco_methods" / "mine").exists()


def test_a_package_of_an_extra_is_declared(folder: Path) -> None:
    """Only some have torch: neuco does without it."""
    code, text = new(folder, "--encoder", "--requires", "torch")
    assert code == 0, text
    assert 'requires=("torch",)' in (folder / "neuco_methods" / "mine" / "__init__.py").read_text()


def test_an_encoder_is_given_its_weights_and_they_are_part_of_its_identity(folder: Path) -> None:
    with FileServer() as server:
        server.http.files |= {"/lab/a.npz": packed(1, 1), "/lab/b.npz": packed(2, 1)}
        code, text = new(folder, "--encoder", "--weights", f"backbone={server.base}/lab/a.npz")
        assert code == 0, text
        encoder = folder / "neuco_methods" / "mine" / "encoder.py"
        text = encoder.read_text().replace("means = batch", "means = len(np.load(self.backbone)['ids']) * batch")
        encoder.write_text(text)
        out = folder / "one.csv"
        embed = ("embed", "--method", "mine", "--dataset", "good", "--out")
        assert neuco(folder, *embed, out).code == 0
        init = folder / "neuco_methods" / "mine" / "__init__.py"
        old, data = packed(1, 1), packed(2, 1)
        changed = init.read_text().replace("lab/a.npz", "lab/b.npz").replace(f"size={len(old)}", f"size={len(data)}")
        init.write_text(changed.replace(hashlib.sha256(old).hexdigest(), hashlib.sha256(data).hexdigest()))
        assert neuco(folder, *embed, folder / "two.csv").code == 0
        refused = neuco(folder, *embed, folder / "three.csv", "--param", "backbone=x")
        assert (refused.code, "has no parameter backbone; it has: none" in refused.err) == (2, True), refused.err
    one, two = (np.loadtxt(folder / name, delimiter=",", skiprows=1, usecols=1) for name in ("one.csv", "two.csv"))
    assert np.allclose(2 * one, two, rtol=1e-4)
