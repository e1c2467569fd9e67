"""What the contract asks of tasks, methods and datasets alike."""

from __future__ import annotations

import re

from neuco_core.contract.contract import Broken, Inapplicable, check
from neuco_core.contract.subjects import Subject

TEST = re.compile(r"^(def test_|test_\w+ = contract\()", re.MULTILINE)


def files(subject: Subject) -> str:
    """A card that names the subject, and a test file with a test in it."""
    folder = subject.folder
    if folder is None:
        raise Inapplicable("it comes from a package of its own, which has its own files")
    card, test = folder / "README.md", folder / "test.py"
    words = card.read_text(encoding="utf-8") if card.is_file() else ""
    if not words.strip():
        raise Broken("no card", where=card)
    if subject.id not in words:
        raise Broken(f"the card does not name the {subject.noun}", where=card, expected=repr(subject.id))
    if not test.is_file() or not TEST.search(test.read_text(encoding="utf-8")):
        raise Broken("no test", where=test, expected="a function test_…, or test_contract = contract(…)")
    return f"{card.name}, {test.name}"


for noun in ("task", "method", "dataset"):
    check(
        f"{noun}-files",
        noun,
        asks=f"the plugin's directory has a card (README.md) that names the {noun}, and a test.py that holds a test",
        reason=f"a {noun} that nobody can look up or run is not maintained for long",
        cure=f"write README.md and test.py beside __init__.py; `neuco new {noun}` makes both",
    )(files)


def require_words(subject: Subject) -> None:
    for field in ("title", "description"):
        if not getattr(subject.spec, field):
            raise Broken(f"no {field}")
