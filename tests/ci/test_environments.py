"""Packages and weights of a plugin: installed and fetched outside, seen inside, and by nobody else.

An index of its own (a folder with a wheel) is enough; ``test_extract`` takes a real library from the package
index.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ci.environments import BEHIND, install
from ci.extract import fetch_sources, run_tests
from ci.plugin_sandbox import PluginSandbox
from ci.sandbox import Limits
from neuco_core.errors import DataError
from neuco_core.specs import Method, Remote
from tests.ci.helpers import Upstream, fresh_cache, plugin_data, write_file
from tests.encode.test_requirements import lock
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


SEES = """
import pytest, tinypack
from neuco_core.fetch.fetch import fetch
from neuco_core.specs import Method, Remote

def test_what_is_seen():
    path = fetch(Remote({url!r}, {sha256!r}))
    assert (tinypack.scale([1]).tolist(), path.read_bytes()) == ([3], b"learned")
    with pytest.raises(OSError, match="Read-only"):
        path.open("ab")
    with pytest.raises(OSError, match="Read-only"):
        open(tinypack.__file__, "a")
"""
SEES_NOTHING = """
import importlib.util, os
from pathlib import Path

def test_what_is_seen():
    assert importlib.util.find_spec("tinypack") is None, "packages of another plugin"
    assert not os.path.isdir("/packages")
    assert not list(Path("/tmp/cache").rglob("*.bin")), "files of another plugin"
"""


def test_packages_and_weights_are_seen_by_their_plugin_alone(
    index: Path, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed and fetched outside, read-only inside."""
    url, sha256 = "hf://lab/table@1a2b/table.bin", hashlib.sha256(b"learned").hexdigest()
    method = Method(id="plain", encoder=object, requires=("tinypack",), weights={"table": Remote(url, sha256)})
    plugins = [plugin_data(method, at=tmp_path / "plain"), plugin_data(folder="neuco_methods/b", at=tmp_path / "b")]
    write_file("plain/test.py", SEES.format(url=url, sha256=sha256))(tmp_path)
    write_file("plain/requirements.txt", write_wheel(index))(tmp_path)
    write_file("b/test.py", SEES_NOTHING)(tmp_path)
    boxes = PluginSandbox(upstream.base, tmp_path / "scratch", Limits())
    with FileServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.base)
        server.http.files["/lab/table/resolve/1a2b/table.bin"] = b"learned"
        for plugin in plugins:
            fetch_sources(plugin, plugin.methods)
            run_tests(boxes, plugin)
    details = [(finding.status, finding.detail) for plugin in plugins for finding in plugin.findings]
    assert details == [("ok", "1 passed, 0 failed, 0 skipped")] * 2
