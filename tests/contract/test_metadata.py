"""Licences and citations that are taken, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from neuco_core.contract.checks import check_citation, check_license
from neuco_core.contract.contract import Broken

LICENCES = ["MIT", "CC-BY-4.0", "Apache-2.0 OR MIT"]
CITATIONS = [
    "10.5281/zenodo.123",
    "Vinge and others (2025), arXiv:2510.17914",
    "@misc{x, title={A {Nested} title, with commas}, year=2025}",
    '@article{y:1, author = "A and B", title = "T", year = "2020",}',
]
BAD_LICENCES = ["", "cc-by-4.0", "free", "MIT and others"]
BAD_BIBTEX = ["@misc{x}", "@misc{x, title={A}}", "@misc{x, title={A, year=2025}", "@misc{x, =, year=2025}"]
BAD_CITATIONS = ["", "the paper", "10.1/x", *BAD_BIBTEX]
CASES = [
    (check_license, LICENCES, BAD_LICENCES, "licence"),
    (check_citation, CITATIONS, BAD_CITATIONS, "citation|BibTeX"),
]


@pytest.mark.parametrize(("check", "good", "bad", "message"), CASES)
def test_what_tools_know_is_taken_and_nothing_else(
    check: Callable[[str], str], good: list[str], bad: list[str], message: str
) -> None:
    assert all(map(check, good))
    for text in bad:
        with pytest.raises(Broken, match=message):
            check(text)
