"""A plugin's locked environment: what may stand in ``requirements.txt``, and what a user is told who lacks it."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from neuco_core.encode.requirements import check_packages, read_lock
from neuco_core.errors import DataError, DependencyError
from neuco_core.specs import Method, Origin

SHA = "0123456789abcdef" * 4
GOOD = f"""# made by hand
Tiny_Pack==1.0 \\
    --hash=sha256:{SHA} \\
    --hash=sha256:{SHA[::-1]}

other==2.0rc1 --hash=sha256:{SHA}  # why
"""


def lock(folder: Path, text: str) -> Path:
    path = folder / "requirements.txt"
    path.write_text(text)
    return path


def test_a_lock_is_names_versions_and_hashes(tmp_path: Path) -> None:
    first, second = read_lock(lock(tmp_path, GOOD))
    assert (first.name, first.version, first.hashes) == ("tiny-pack", "1.0", (SHA, SHA[::-1]))
    assert str(second) == f"other==2.0rc1 --hash=sha256:{SHA}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tiny==1.0", "a package without a hash"),
        *[
            (f"{pin} --hash=sha256:{SHA}", "not a locked package")
            for pin in (
                *("tiny>=1.0", "tiny==1.*", "tiny[extra]==1.0", "./tiny-1.0-py3-none-any.whl"),
                "tiny @ https://example.org/tiny-1.0-py3-none-any.whl",
                "tiny==1.0 --config-settings=x",
            )
        ],
        ("tiny==1.0 --hash=md5:" + SHA[:32], "not a locked package"),
        ("tiny==1.0 --hash=sha256:" + SHA[:8], "not a locked package"),
        ("git+https://example.org/tiny.git", "not a locked package"),
        *[(option, "not a locked package") for option in ("-e .", "-r other.txt", "--no-binary :all:")],
        ("--index-url https://example.org/simple", "not a locked package"),
        ("tiny==1.0 \\\n  --extra-index-url \\\n https://example.org", "not a locked package"),
        ("other_pack==1.0 --hash=sha256:" + SHA, "a package twice"),
    ],
)
def test_everything_else_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=f"line 2: {message}"):
        read_lock(lock(tmp_path, f"other-pack==1.0 --hash=sha256:{SHA}\n{line}\n"))


def test_a_user_is_told_what_installs_it(tmp_path: Path) -> None:
    path = lock(tmp_path, f"numpy=={metadata.version('numpy')} --hash=sha256:{SHA}\n")
    method = Method(id="m", encoder=print, origin=Origin("m", str(tmp_path)))
    check_packages(method)
    lock(tmp_path, f"no-such-pack==1.0 --hash=sha256:{SHA}\nnumpy==1.0 --hash=sha256:{SHA}\n")
    with pytest.raises(DependencyError) as caught:
        check_packages(method)
    wanted = f"python -m pip install --require-hashes --only-binary :all: --no-deps -r {path}"
    assert wanted in str(caught.value)
    assert f"no-such-pack 1.0, numpy 1.0 (here: {metadata.version('numpy')})" in str(caught.value)
