"""The challenge files: pinned, and read by the path that every file method takes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuco_core.errors import ChecksumError, DataError, NeucoError, UsageError
from neuco_core.specs import Method, Remote
from neuco_methods.challenge import DATASET, ENTRIES, neuco_methods

METHODS = {method.id: method for method in neuco_methods()}


def local(method: Method, path: Path, sha256: str) -> Method:
    return replace(method, files={DATASET: Remote(path.as_uri(), sha256=sha256, size=path.stat().st_size)})


def test_every_file_is_pinned_to_its_public_checksum() -> None:
    assert set(METHODS) == set(ENTRIES)
    remotes = [method.files[DATASET] for method in METHODS.values()]
    assert all(remote.pinned and remote.size for remote in remotes)
    assert len({remote.sha256 for remote in remotes}) == len({remote.url for remote in remotes}) == 5


def test_only_the_organisers_entries_are_baselines() -> None:
    assert {name for name, method in METHODS.items() if method.baseline} == {
        "challenge_baseline_mean",
        "challenge_baseline_random",
    }


def test_a_verified_file_is_read_and_a_changed_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "baseline_mean_embeddings_eval.csv"
    path.write_text("id,0,1\nab,0.5,1\ncd,-1,2\n", encoding="utf-8")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    method = local(METHODS["challenge_baseline_mean"], path, sha256)
    embeddings = method.embeddings(DATASET)
    assert embeddings.ids == ("ab", "cd")
    assert np.array_equal(embeddings.values, np.array([[0.5, 1], [-1, 2]], np.float32))
    with pytest.raises(NeucoError) as caught:
        local(method, path, "0" * 64).embeddings(DATASET)
    assert isinstance(caught.value, ChecksumError)


def test_there_is_one_dataset_and_there_are_no_parameters() -> None:
    with pytest.raises(DataError, match=r"'challenge_kth' has no embeddings of dataset 'mini'; expected one of ssl4eo"):
        METHODS["challenge_kth"].embeddings("mini")
    with pytest.raises(UsageError, match="no parameters"):
        METHODS["challenge_kth"].embeddings(DATASET, seed=3)
