"""For a plugin's ``test.py``, in this repository or in any other: an encoder tried on small cubes, and the contract.

    from neuco_core.testing import TinyCubes, check_encoder, contract

    def test_keeps_the_promises_of_an_encoder():
        check_encoder(MyEncoder, TinyCubes(bands=("grey/0",), seasons=("scene",), size=8))

    test_contract = contract("task", "soil_ph")

``contract`` gives one test for each check that ``neuco check --help`` lists; ``pytest --neuco soil_ph`` runs the same
checks without any file. Only the contract needs pytest: an encoder can be tried in a session without it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from neuco_core.contract.repeatability import disagreement
from neuco_core.cubes.cubes import CubeBatch, CubeSource, Renamed
from neuco_core.encode.encoding import Pipeline, one_thread
from neuco_core.encoders import MAX_DIM, PUBLISHED_STATISTICS
from neuco_core.errors import PluginError
from neuco_core.plugins.code_key import StandIn
from neuco_core.specs import Dataset, Method, Task

if TYPE_CHECKING:
    from neuco_core.contract.contract import Finding
    from neuco_core.contract.subjects import Subject
    from neuco_core.specs import Check

SSL4EO_BANDS = tuple(PUBLISHED_STATISTICS)
LANDSAT_BANDS = tuple(f"etm/B{number}" for number in (1, 2, 3, 4, 5, 7))
GREY_BANDS = ("grey/0",)
SEASONS = ("spring", "summer", "fall", "winter")


class TinyCubes:
    """A few cubes of slopes and noise, each made from its id alone."""

    def __init__(
        self,
        count: int = 12,
        bands: Sequence[str] = SSL4EO_BANDS,
        seasons: Sequence[str] = SEASONS,
        size: int = 16,
        version: str = "1",
    ) -> None:
        self.version = version
        self.bands = tuple(bands)
        self.seasons = tuple(seasons)
        self.size = size
        self._ids = tuple(hashlib.sha256(str(i).encode()).hexdigest()[:12] for i in range(count))

    def ids(self) -> tuple[str, ...]:
        return self._ids

    def read(self, ids: Sequence[str]) -> CubeBatch:
        return CubeBatch(tuple(ids), np.stack([self._one(name) for name in ids]), self.bands, self.seasons)

    def shuffled(self) -> TinyCubes:
        """The same samples in reverse order."""
        other = TinyCubes(len(self._ids), self.bands, self.seasons, self.size, self.version)
        other._ids = self._ids[::-1]
        return other

    def dataset(self, name: str = "tiny") -> Dataset:
        cubes = StandIn(f"tiny cubes of {self.size} pixels", lambda: self)  # their version tells others apart
        return Dataset(id=name, bands=self.bands, seasons=self.seasons, cubes=cubes, synthetic=True)

    def _one(self, name: str) -> np.ndarray:
        random = np.random.default_rng(int(name, 16))
        shape = (len(self.seasons), len(self.bands), self.size, self.size)
        slope = np.linspace(-1, 1, self.size)[:, None] * random.normal(size=(*shape[:2], 1, 1))
        values = random.normal(size=(*shape[:2], 1, 1)) + slope + random.normal(scale=0.3, size=shape)
        pairs = np.array([PUBLISHED_STATISTICS.get(band, (60.0, 20.0)) for band in self.bands])
        return np.asarray(values * pairs[:, 1, None, None] + pairs[:, 0, None, None], dtype=np.float32)


def encode_all(factory: Callable[[], Any], source: CubeSource, batch_size: int = 64, threads: int = 1) -> np.ndarray:
    """Fit the encoder if it can be fitted, and encode all samples: rows in the order of the sorted ids."""
    ids = source.ids()
    requires = ("torch",) if "torch" in sys.modules else ()
    with one_thread(bool(requires)):
        encoder = factory()
        if hasattr(encoder, "fit"):
            encoder.fit(source)
        method = Method(id="checked", encoder=factory, requires=requires)
        values = np.concatenate(
            [rows for _, rows, _ in Pipeline(method, encoder, source, batch_size, threads).rows(ids)]
        )
    return np.asarray(values[np.argsort(ids)])


def check_encoder(
    factory: Callable[[], Any], source: TinyCubes | None = None, *, uses_ids: bool = False, tolerance: float = 0.0
) -> np.ndarray:
    """Check what every encoder promises and return its values; the first broken promise is a ``PluginError``.

    ``uses_ids`` and ``tolerance`` are what the method declares: whether values may depend on the names of samples, and
    how far other batches may move them, as a part of their spread.
    """
    source = source or TinyCubes()
    values = encode_all(factory, source)
    _promise(values.dtype == np.float32, "float32 values", values.dtype)
    _promise(values.ndim == 2 and len(values) == len(source.ids()), "one row for each sample", values.shape)
    _promise(1 <= values.shape[1] <= MAX_DIM, f"1 to {MAX_DIM} values", values.shape[1])
    _promise(bool(np.isfinite(values).all()), "finite values", "NaN or infinity")
    _promise(len(np.unique(values, axis=0)) == len(values), "different rows for different samples", "equal rows")
    renamed = source if uses_ids else Renamed(source)
    for what, again in (
        ("when it runs again", encode_all(factory, source)),
        ("with another batch size", encode_all(factory, source, batch_size=5, threads=2)),
        ("when the samples come in another order", encode_all(factory, source.shuffled())),
        ("when the samples have other names", encode_all(factory, renamed)),
    ):
        if problem := disagreement(values, again, tolerance):
            expected, got = f"the same values {what}, {problem['expected']}", f"different values: {problem['got']}"
            _promise(False, expected, got)
    return values


def _promise(kept: bool, expected: str, got: object) -> None:
    if not kept:
        raise PluginError("the encoder breaks a promise", expected=expected, got=got)


def contract(noun: str, *names: str, allow_unpinned: bool = False) -> Callable[[str, str], None]:
    """A test function for tasks, methods or datasets: one test for each check of the contract and each name.

    But for ``task-tests``, as tests do not run themselves, and ``task-change``, which needs git.
    """
    import pytest

    from neuco_core.contract.contract import all_checks

    elsewhere = f"{noun}-tests", f"{noun}-change"
    checks = {item.id: item for item in all_checks(noun) if item.id not in elsewhere}

    @pytest.mark.parametrize("name", names)
    @pytest.mark.parametrize("check", checks)
    def test_contract(check: str, name: str) -> None:
        tell(checks[check], examine(checks[check], noun, name, allow_unpinned=allow_unpinned))

    return test_contract


def examine(item: Check, noun: str, name: str, *, allow_unpinned: bool = False) -> Finding:
    """What one check finds."""
    from neuco_core.contract.contract import run_check

    return run_check(item, _subject(noun, name), allow_unpinned=allow_unpinned)


def tell(item: Check, finding: Finding) -> None:
    """A finding as the outcome of a test: it passes, fails with reason and cure, or is skipped with the reason.

    A skip never turns a run red, as what is missing is nobody's fault; `neuco check` and `pytest --neuco` end with 8.
    """
    import pytest

    from neuco_core.contract.contract import FAILED, SKIPPED

    if finding.status == SKIPPED:
        # Justified: the finding says why there is nothing to check on this machine or for this subject.
        pytest.skip(f"no evidence for an essential check: {finding.detail}" if finding.lacking else finding.detail)
    if finding.status == FAILED:
        pytest.fail(f"{finding.detail}\nwhy: {item.reason}\ncure: {finding.cure or item.cure}", pytrace=False)


@cache
def _subject(noun: str, name: str) -> Subject:
    """A spec with its data; kept, because all tests of a contract look at the same one."""
    from neuco_core.contract.subjects import subject_of
    from neuco_core.plugins.catalog import catalog

    return subject_of(catalog().load({"task": Task, "method": Method, "dataset": Dataset}[noun], name))


def needs(*packages: str) -> Any:
    """``pytestmark = needs("timm")`` skips tests where packages that their plugin locks are not installed."""
    import pytest

    lacking = [name for name in packages if not any(metadata.distributions(name=name))]
    return pytest.mark.skipif(bool(lacking), reason=f"not installed: {', '.join(lacking)}; see requirements.txt")
