"""What can go wrong, as types.

Every error that a user can cause or meet is a ``NeucoError`` with up to four parts: what happened and
where, what was expected and what was found, and what to do next. The command line prints it as one line
and ends with the error's exit code; the library raises it.
"""

from __future__ import annotations

from collections.abc import Iterable

EXIT_CODES = {
    0: "success",
    1: "something failed: a score, a check, or an unexpected error",
    2: "wrong use of the command line",
    3: "no such task, method, dataset, suite, protocol or other id",
    4: "data that is bad, or is not what it claims to be",
    5: "a broken plugin, or two that claim the same id",
    6: "a package that is not installed",
    7: "a remote that cannot be reached, or NEUCO_OFFLINE is set",
    8: "nothing failed, but an essential check was skipped for want of evidence",
    130: "interrupted",
}

LACKING = 8  # the one exit code that belongs to no error

FEW = 8  # ids that an error lists

# Nouns that have a command which lists them.
LISTED = ("dataset", "method", "protocol", "suite", "task")


class NeucoError(Exception):
    """The base of all errors that neuco raises on purpose."""

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        expected: object = None,
        got: object = None,
        hint: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        # A name, a row or a column comes first; a path or an address is long, and comes after what people want to read.
        where = "" if self.where is None else str(self.where)
        path, _, first = where.partition(", ") if "/" in where.partition(", ")[0] else ("", "", where)
        text = f"{first}: {self.what}" if first else self.what
        values = {"expected": self.expected, "got": self.got}
        parts = [f"{word} {value}" for word, value in values.items() if value is not None]
        if parts:
            text += (" " if text.endswith("?") else "; ") + ", ".join(parts)
        if path:
            text += f" ({path})"
        if self.hint:
            text += f" {self.hint}" if text.endswith((".", "?", "!")) else f". {self.hint}"
        return " ".join(text.split())

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are pickled by their positional arguments only; errors of worker processes must keep all parts.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(cls: type[NeucoError], state: dict[str, object]) -> NeucoError:
    error = cls.__new__(cls)
    Exception.__init__(error, state.get("what"))
    error.__dict__.update(state)
    return error


class UsageError(NeucoError):
    """The caller asked for something impossible: a wrong option, a wrong combination."""

    exit_code = 2


class SpecError(NeucoError):
    """A declaration with a value that is not allowed."""

    exit_code = 5


class UnknownIdError(NeucoError):
    """Nothing is registered under that id."""

    exit_code = 3

    def __init__(self, noun: str, name: str, known: Iterable[str], hint: str = "") -> None:
        from difflib import get_close_matches

        known = sorted(set(known))
        self.close = get_close_matches(name, known, n=3, cutoff=0.6)
        if self.close:
            advice = "Did you mean " + " or ".join(repr(match) for match in self.close) + "?"
        else:
            named = f"Known: {', '.join(known)}" if len(known) <= FEW else f"{len(known)} are known"
            listing = f"Run `neuco {noun}s`" if noun in LISTED else "" if hint else named
            advice = listing if known else f"No {noun} is registered"
        super().__init__(f"no {noun} {name!r}", hint=f"{advice} {hint}".strip())
        self.noun = noun
        self.name = name


class PluginError(NeucoError):
    """A plugin that cannot be used."""

    exit_code = 5


class DuplicateIdError(PluginError):
    """Two plugins, or one plugin twice, register the same id."""


class DataError(NeucoError):
    """Data that is bad, or is not what it claims to be."""

    exit_code = 4


class ChecksumError(DataError):
    """Bytes that differ from the declared sha256 or size."""


class UnpinnedError(DataError):
    """A source whose checksum nobody has verified yet."""


class DependencyError(NeucoError):
    """A package that is needed here is not installed."""

    exit_code = 6


class FetchError(NeucoError):
    """A remote that could not be read."""

    exit_code = 7


class OfflineError(FetchError):
    """The network is needed and NEUCO_OFFLINE forbids it."""


class ScoreError(NeucoError):
    """A score that cannot be computed from valid data, e.g. too few samples."""


class NotApplicableError(ScoreError):
    """A protocol that makes no sense for a kind of task: nobody's failure."""
