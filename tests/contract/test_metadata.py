"""Licences and citations that are taken, and those that are refused."""

from __future__ import annotations

import pytest

from neuco_core.contract.checks import check_citation, check_license
from neuco_core.contract.contract import Broken


@pytest.mark.parametrize("text", ["MIT", "CC-BY-4.0", "Apache-2.0 OR MIT"])
def test_licences_that_tools_know_are_taken(text: str) -> None:
    assert check_license(text) == text


@pytest.mark.parametrize("text", ["", "cc-by-4.0", "free", "MIT and others"])
def test_other_licences_are_refused(text: str) -> None:
    with pytest.raises(Broken, match="licence"):
        check_license(text)


@pytest.mark.parametrize(
    "text",
    [
        "10.5281/zenodo.123",
        "Vinge and others (2025), arXiv:2510.17914",
        "@misc{x, title={A {Nested} title, with commas}, year=2025}",
        '@article{y:1, author = "A and B", title = "T", year = "2020",}',
    ],
)
def test_citations_that_can_be_followed_are_taken(text: str) -> None:
    assert check_citation(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the paper",
        "@misc{x}",
        "@misc{x, title={A}}",
        "@misc{x, title={A, year=2025}",
        "@misc{x, =, year=2025}",
        "10.1/x",
    ],
)
def test_other_citations_are_refused(text: str) -> None:
    with pytest.raises(Broken):
        check_citation(text)
