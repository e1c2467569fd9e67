"""Packages and weights of a plugin: installed and fetched outside, seen inside, and by nobody else.

An index of its own (a folder with a wheel) is enough; ``test_extract`` takes a real library from the package
index.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ci.environments import BEHIND, install
from ci.report import parse
from neuco_core.contract.scaffold import declare
from neuco_core.errors import DataError
from neuco_core.specs import Remote
from tests.ci.helpers import Upstream, ci, fresh_cache, write_file
from tests.contract.helpers import METHOD, TEST
from tests.fetch.http_server import FileServer

CODE = "import numpy\n\ndef scale(values):\n    return numpy.asarray(values) * 3\n"


def write_wheel(folder: Path, name: str = "tinypack", version: str = "1.0", code: str = CODE) -> str:
    """A wheel in a folder; gives the line of a lock."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    parts = {
        f"{name}/__init__.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*parts, f"{info}/RECORD"))
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in {**parts, f"{info}/RECORD": record}.items():
            archive.writestr(member, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the only place where pip, as it is configured, finds packages."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("NEUCO_CACHE", fresh_cache(tmp_path / "cache"))
    return tmp_path / "index"


def lock(folder: Path, text: str) -> Path:
    path = folder / "requirements.txt"
    path.write_text(text)
    return path


def test_an_environment_is_installed_once_and_goes_by_its_lock(index: Path, tmp_path: Path) -> None:
    line = write_wheel(index)
    folder = install(lock(tmp_path, line))
    assert (folder / "tinypack" / "__init__.py").read_text() == CODE
    (index / "tinypack-1.0-py3-none-any.whl").unlink()
    assert install(lock(tmp_path, f"# the same\n{line}")) == folder
    other = write_wheel(index, code=CODE.replace("3", "4"))
    assert install(lock(tmp_path, other)) != folder


def test_what_cannot_be_installed_says_why(index: Path, tmp_path: Path) -> None:
    line = write_wheel(index, code="x = '" + "0" * 3_000_000 + "'\n")
    with pytest.raises(DataError, match=r"DO NOT MATCH THE HASHES.*comes as a file of embeddings"):
        install(lock(tmp_path, line[:-9] + "00000000\n"))
    with pytest.raises(DataError, match=r"more than 1 MB.*comes as a file of embeddings"):
        install(lock(tmp_path, line), written=1 << 20)
    with pytest.raises(DataError, match="longer than 0 s"):
        install(lock(tmp_path, line), seconds=0)
    (index / "tinypack-1.0.tar.gz").write_bytes(b"")
    (index / "tinypack-1.0-py3-none-any.whl").unlink()
    with pytest.raises(DataError, match=r"cannot be installed: pip: .*tinypack.* Every package needs a wheel"):
        install(lock(tmp_path, line))
    assert [path.name for path in (tmp_path / "cache" / "environments").iterdir()] == []


def test_neucos_own_packages_are_not_replaced(index: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"the lock has numpy 1\.0, and every method runs with numpy {np.__version__}"):
        install(lock(tmp_path, write_wheel(index, "numpy", "1.0")))
    same = write_wheel(index, "numpy", np.__version__)
    assert list(install(lock(tmp_path, same)).iterdir()) == []  # it is here already
    # A wheel may hold a module of any name; neuco's own come first.
    line = write_wheel(index, "sly", "1.0").replace("\n", "")
    with zipfile.ZipFile(index / "sly-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("numpy/__init__.py", "raise RuntimeError('replaced')")
    digest = hashlib.sha256((index / "sly-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    folder = install(lock(tmp_path, f"{line.partition(' ')[0]} --hash=sha256:{digest}\n"))
    command = [sys.executable, "-c", BEHIND, str(folder), "timeit", "-n1", "-r1", "import numpy, sly"]
    assert subprocess.run(command, capture_output=True).returncode == 0


MAKE = """def make(table):
    from neuco_methods.plain.encoder import Flat
    return Flat(table)

class Old"""
LOCKED = METHOD.replace("class Flat", MAKE).replace("Method, hookimpl", "Method, Remote, hookimpl")
ENCODER = """
import numpy as np
import tinypack

class Flat:
    def __init__(self, table):
        with np.load(table, allow_pickle=False) as arrays:
            self.table = arrays["table"]
        try:
            open(table, "ab")
        except OSError as error:
            assert "Read-only" in str(error), error

    def encode(self, batch):
        return tinypack.scale(batch.values.reshape(len(batch.ids), -1)) @ self.table
"""
CURIOUS = """
import importlib.util, os
from pathlib import Path
assert importlib.util.find_spec("tinypack") is None, "packages of another plugin"
assert not os.path.isdir("/packages") and not list(Path("/tmp/cache").rglob("*.npz")), "files of another plugin"
"""


# Ten seconds: a whole pull request. How a lock is installed, and which mounts a plugin has, quick tests say.
@pytest.mark.slow
def test_packages_and_weights_are_seen_by_their_plugin_alone(index: Path, upstream: Upstream, tmp_path: Path) -> None:
    line = write_wheel(index)
    buffer = io.BytesIO()
    np.savez(buffer, table=np.eye(64, dtype=np.float32)[:, :32])
    weights = buffer.getvalue()

    def change(fork: Path) -> None:
        remote = Remote("hf://lab/table@1a2b/table.npz", hashlib.sha256(weights).hexdigest(), len(weights))
        declared = f'encoder=make, requires=("tinypack",), weights={{"table": {declare(remote, 4)}}}'
        text = LOCKED.replace("encoder=Flat", declared)
        write_file("neuco_methods/plain/__init__.py", text)(fork)
        write_file("neuco_methods/plain/encoder.py", ENCODER)(fork)
        write_file("neuco_methods/plain/README.md", "# plain\n\nThe pixels.\n")(fork)
        write_file("neuco_methods/plain/test.py", "import tinypack\n" + TEST)(fork)
        write_file("neuco_methods/plain/requirements.txt", line)(fork)
        looks = f"        exec({CURIOUS!r})\n        return batch"
        curious = METHOD.replace('id="plain"', 'id="curious"').replace("        return batch", looks)
        write_file("neuco_methods/curious/__init__.py", curious)(fork)
        write_file("neuco_methods/curious/README.md", "# curious\n\nThe pixels.\n")(fork)
        write_file("neuco_methods/curious/test.py", TEST)(fork)

    fork = upstream.pull_request("locked", change)
    with FileServer() as server:
        server.http.files["/lab/table/resolve/1a2b/table.npz"] = weights
        out = tmp_path / "report.json"
        done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(out), HF_ENDPOINT=server.base)
    report, records = parse(out.read_bytes())
    assert (done.returncode, report.green) == (0, True), done.stdout + done.stderr
    assert {record.method: record.status for record in records} == {"plain": "ok", "curious": "ok"}
