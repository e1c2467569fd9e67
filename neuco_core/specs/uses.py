"""What extensions bring: commands, checks of the contract, and what boards and their pages show besides scores.

Functions may be given by name, ``"package.module:function"``: then listing an extension imports nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuco_core import _validate as v
from neuco_core.specs.base import Spec, check_target

PLACES = ("board", "method", "task")


@dataclass(frozen=True, kw_only=True)
class Command(Spec):
    """A command of ``neuco``: a click command, or its name. ``title`` is its line in ``neuco --help``."""

    command: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "command")


@dataclass(frozen=True, kw_only=True)
class Check(Spec):
    """One point of the contract: what it ``asks``, why, and what to do if it is broken.

    ``run(subject)`` returns a few words, or raises (see ``neuco_core.contract.contract``). ``noun`` is what it looks
    at: a task, a method, a dataset, or something else that ``find(name)`` finds by what a user names; it returns an
    object with ``noun`` and ``id``, or ``None``.
    """

    noun: str
    asks: str
    reason: str
    cure: str
    run: Callable[[Any], str] | str
    find: Callable[[str], Any] | str | None = None
    essential: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        v.check_id(self, "noun")
        v.check_text(self, "asks", "reason", "cure")
        check_target(self, "run")
        if self.find is not None:
            check_target(self, "find")
        v.check_bool(self, "essential")


@dataclass(frozen=True, kw_only=True)
class Panel(Spec):
    """A tab of a board's page, or a section of the page of a method or a task, as ``about`` says.

    ``data(page)`` gets what the board's pages show (``neuco_core.site.page_data.PageData``), and the id of the method
    or task as second argument. It returns what the ``template`` needs, or ``None``: then nothing is shown. A template
    is jinja2, a file of the package as ``"package:file.html"`` or its text; all values are escaped, and ``ui`` has
    the site's macros.
    """

    data: Callable[..., Any] | str
    template: str
    about: str = "board"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "data")
        v.check_text(self, "template")
        v.check_choice(self, "about", PLACES)


@dataclass(frozen=True, kw_only=True)
class PublishedSource(Spec):
    """``boards(registry)`` returns boards that others have published, each with its source; none is an empty list."""

    boards: Callable[..., Any] | str

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "boards")


@dataclass(frozen=True, kw_only=True)
class CellSource(Spec):
    """``fill(board)`` returns ``ExtraCells``: values for empty cells of a board, marked, and never ranked."""

    fill: Callable[..., Any] | str

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "fill")
