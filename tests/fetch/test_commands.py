"""``neuco data …`` as a user types it: what it prints, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuco_core.fetch.cache import entries
from tests.command import neuco_here
from tests.fetch.helpers import files_below, sha256
from tests.fetch.http_server import FileServer
from tests.fetch.s3_server import KEY, SECRET, S3Server
from tests.fetch.soil import CLAY, PH, VECTORS, installed


@pytest.fixture(autouse=True)
def _soil(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server.http.files |= {"/static/clay.csv": CLAY, "/static/vectors.csv": VECTORS}
    server.http.files["/datasets/lab/soil/resolve/0123abc/labels/ph.csv"] = PH
    with installed(tmp_path / "site", server.base, monkeypatch):
        yield


def run(*args: object) -> tuple[int, str, str]:
    done = neuco_here("data", *args)
    return done.code, done.out, done.err


def parsed(*args: object) -> Any:
    return neuco_here("data", *args, "--json").json


def test_fetch_pin_and_fetch() -> None:
    code, out, err = run("fetch", "soil_ph", "soil_clay")
    assert code == 4
    assert err.startswith("neuco: error: the labels of soil_ph are not downloaded yet")
    assert "Run `neuco data pin soil_ph`" in err
    assert err.count("\n") == 1
    assert "soil_clay  fetched" in out, "the good ones are there all the same"
    code, out, err = run("pin", "soil_ph", "--yes")
    assert code == 0
    for part in ("soil_ph: not pinned yet", sha256(PH), "1 file pinned in"):
        assert part in out + err
    states = [(row["task"], row["state"]) for row in parsed("pin", "--suite", "soil-1")]
    assert states == [("soil_ph", "unchanged"), ("soil_clay", "declared")]
    rows = parsed("fetch", "--suite", "soil-1")
    assert [(row["name"], row["state"], row["size"]) for row in rows] == [
        ("soil_ph", "cached", len(PH)),
        ("soil_clay", "cached", len(CLAY)),
    ]
    assert Path(rows[0]["path"]).read_bytes() == PH


def test_one_bad_source_does_not_keep_the_others_from_being_pinned(server: FileServer) -> None:
    del server.http.files["/static/clay.csv"]
    code, out, err = run("pin", "--suite", "soil-1", "--yes")
    assert code == 7
    assert "1 file pinned in" in err
    assert "soil_clay: failed\n" in out
    assert "HTTP 404" in err
    del server.http.files["/datasets/lab/soil/resolve/0123abc/labels/ph.csv"]
    code, out, err = run("pin", "soil_*", "--json")
    assert code == 7
    assert [row["state"] for row in json.loads(out)] == ["failed", "failed"]
    assert "2 of 2 files could not be pinned" in err


def test_files_of_methods() -> None:
    rows = parsed("fetch", "--method", "soil_file")
    assert [(row["name"], row["state"]) for row in rows] == [("soil_file/soil", "fetched")]
    code, _, err = run("fetch", "--method", "soil_encoder")
    assert code == 2
    assert "its encoder makes the embeddings" in err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["fetch"], 2, "no task given"),
        (["pin"], 2, "no task given"),
        (["fetch", "soil_phh"], 3, "Did you mean 'soil_ph'"),
        (["fetch", "--suite", "soil-2"], 3, "Did you mean 'soil-1'"),
        (["pin", "nothing_like_it"], 3, "no task"),
        (["link", "soil"], 2, "needs a dataset and a folder"),
        (["link", "--remove"], 2, "needs a dataset and a folder"),
        (["link", "soil", "--remove"], 2, "is not linked"),
        (["link", "soilx", "."], 3, "Did you mean 'soil'"),
        (["link", "soil", "no/such/folder"], 2, "not a folder"),
        (["upload", "none.csv", "s3://bucket/"], 2, "no such file"),
        (["no-such-command"], 2, "No such command"),
    ],
)
def test_wrong_use(args: list[str], code: int, message: str) -> None:
    ended, _, err = run(*args)
    assert ended == code
    assert message in err
    assert "Traceback" not in err


def test_offline_has_its_exit_code_and_several_failures_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_OFFLINE", "1")
    code, _, err = run("fetch", "soil_clay")
    assert code == 7
    assert "NEUCO_OFFLINE is set" in err
    code, out, err = run("fetch", "soil_*")
    assert code in (4, 7)
    assert "2 of 2 files could not be fetched" in err
    assert out.count("failed") == 2


def test_link(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "labels").mkdir(parents=True)
    (copy / "labels" / "ph.csv").write_bytes(PH)
    assert run("link")[1] == "No dataset is linked.\n"
    assert str(copy) in run("link", "soil", copy)[1]
    assert parsed("link") == {"soil": str(copy)}
    (copy / "labels" / "ph.csv").unlink()
    code, _, err = run("fetch", "soil_ph")
    assert code == 4
    assert err.startswith(f"neuco: error: labels/ph.csv is not in this local copy of 'soil' ({copy}). Put it there")
    assert "`neuco data link soil FOLDER`" in err
    assert "`neuco data pin TASK`" in err
    assert parsed("fetch", "soil_clay")[0]["state"] == "fetched", "its sha256 is known"
    (copy / "labels" / "ph.csv").write_bytes(PH)
    assert parsed("fetch", "soil_ph")[0]["state"] == "linked", "a local copy needs no pin"
    assert parsed("link", "soil", "--remove") == {}
    assert run("fetch", "soil_ph")[0] == 4


def test_ls_and_verify(cache: Path) -> None:
    assert run("ls")[0] == 0
    run("pin", "soil_ph", "--yes")
    run("fetch", "soil_clay", "--method", "soil_file")
    listed = parsed("ls")
    assert listed["cache"] == str(cache)
    assert sorted((item["name"], item["used_by"]) for item in listed["files"]) == [
        ("clay.csv", ["soil_clay"]),
        ("ph.csv", ["soil_ph"]),
        ("vectors.csv", ["soil_file"]),
    ]
    assert all(item["intact"] for item in parsed("check"))
    damaged = next(item for item in entries() if item.name == "ph.csv")
    damaged.write_bytes(PH[:-1])
    code, out, err = run("check")
    assert code == 4
    assert "corrupt, removed" in out
    assert "1 of 3 files" in err
    assert run("check")[0] == 0
    assert not damaged.exists()


@pytest.mark.parametrize("args", ["ls", "check", "prune", "fetch soil_clay", "pin soil_ph"])
def test_a_cache_that_is_a_file_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: FileServer, args: str
) -> None:
    path = tmp_path / "file"
    path.touch()
    for cache in (path, path / "further" / "down"):
        monkeypatch.setenv("NEUCO_CACHE", str(cache))
        code, _, err = run(*args.split())
        assert code == 4
        assert f"not a folder; expected a folder, got the file {path} ({cache}). Set NEUCO_CACHE" in err
    assert server.http.requests == []


def test_prune_keeps_what_is_used_and_all_empties_the_cache_and_nothing_else(cache: Path) -> None:
    run("fetch", "soil_clay")
    stranger = cache / "sha256" / "ab" / ("ab" + "0" * 62) / "old.csv"
    dead, alive = cache / "tmp" / "fetch-dead" / "x", cache / "tmp" / "fetch-alive" / "x"
    for path in (stranger, dead, alive):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"1234")
    long_ago = time.time() - 7200
    os.utime(dead, (long_ago, long_ago))
    planned = parsed("prune", "--dry-run")
    assert planned == {"bytes": 8, "files": sorted([str(stranger), str(dead)]), "removed": False}
    assert stranger.exists()
    assert "2 files, 8 bytes removed" in run("prune")[1]
    assert not stranger.parent.exists()
    assert not dead.parent.exists()
    assert alive.exists()
    assert [item.name for item in entries()] == ["clay.csv"]
    alive.unlink()
    for name in ("encoded/method/soil/x.npz", "somebody-elses-file"):
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_bytes(b"1")
    assert run("prune", "--all")[0] == 0
    assert files_below(cache) == ["somebody-elses-file"]


def test_upload(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3.bucket("command-bucket")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    (tmp_path / "clay.csv").write_bytes(CLAY)
    stored = parsed("upload", tmp_path / "clay.csv", f"s3://{bucket}/soil/")
    assert stored["sha256"] == sha256(CLAY)
    assert stored["checksum_confirmed"]
    assert stored["url"] == f"s3://{bucket}/soil/clay.csv?versionId={stored['version']}"
    code, out, _ = run("upload", tmp_path / "clay.csv", f"s3://{bucket}/soil/")
    assert code == 0
    assert "the server verified the sha256" in out
    assert 'Remote("s3://command-bucket/soil/clay.csv?versionId=' in out
