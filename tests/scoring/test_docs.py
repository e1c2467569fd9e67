"""What docs/protocols.md says, done."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from neuco_core import load_task
from neuco_core.protocol import PROTOCOLS, load_protocol
from neuco_core.tables.embeddings import make_embeddings, write_embeddings


def test_the_first_example(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = load_task("olinda_elevation_mean").labels().ids
    values = np.random.default_rng(0).standard_normal((len(ids), 4)).astype(np.float32)
    write_embeddings(make_embeddings(ids, values), tmp_path / "mine.csv")
    monkeypatch.chdir(tmp_path)
    code = re.findall(
        r"```python\n(from neuco_core import load_task.*?)```", (root / "docs/protocols.md").read_text(), re.S
    )
    exec(compile(code[0], "docs/protocols.md", "exec"), {})
    mean, std, q = map(float, capsys.readouterr().out.split())
    assert mean < 0.1  # noise tells nothing
    assert q == pytest.approx(100 * 0.02 * mean / (std + 0.02))


def test_every_protocol_and_every_named_variant_is_documented(root: Path) -> None:
    text = (root / "docs/protocols.md").read_text()
    for name in PROTOCOLS:
        assert f"`{name}`" in text
    for variant in re.findall(r"`((?:neuco|ridge|mlp|svm)[a-z0-9-]*\+[^`]*)`", text):
        assert load_protocol(variant).name.startswith(variant.partition("+")[0] + "+")
