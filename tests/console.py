"""Runs the commands of a document: every ``console`` block, with its output compared, and every ``python`` block."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command with the output that the document shows, or one piece of Python."""

    line: int
    command: str
    expected: tuple[str, ...] = ()
    python: bool = False


def steps(text: str) -> list[Step]:
    found: list[Step] = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        found += [Step(line, match[2], python=True)] if match[1] == "python" else _commands(match[2], line)
    return found


def _commands(block: str, first: int) -> list[Step]:
    found: list[Step] = []
    for offset, text in enumerate(block.splitlines()):
        if text.startswith("$ "):
            found.append(Step(first + offset, text[2:]))
        else:
            found[-1] = Step(found[-1].line, found[-1].command, (*found[-1].expected, text))
    return found


def run(step: Step, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as a user would; ``neuco``, ``python`` and ``git`` are known here, and no shell is involved."""
    settings, command = dict(environment), [sys.executable, "-c", step.command]
    if not step.python:
        words = shlex.split(step.command)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            settings[name] = _home(value, environment)
        programs = {"neuco": [sys.executable, "-m", "neuco_core.cli"], "python": [sys.executable], "git": ["git"]}
        assert words[0] in programs, f"line {step.line}: the document may not run {words[0]}"
        command = [*programs[words[0]], *(_home(word, environment) for word in words[1:])]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _home(word: str, environment: dict[str, str]) -> str:
    return environment["HOME"] + word[1:] if word.startswith("~/") else word


def matches(expected: tuple[str, ...], output: str) -> bool:
    """``…`` stands for anything within a line; alone on a line, for any lines. Widths do not count."""
    pattern = "".join(_line(text) for text in expected)
    return re.fullmatch(pattern, _even(output)) is not None


def _line(text: str) -> str:
    if text == "…":
        return r"(?:[^\n]*\n)*"
    return ".*".join(re.escape(part) for part in _even(text).split("…")) + r"\n"


def _even(text: str) -> str:
    """The width of a column depends on what is in it, so neither blanks nor rules are compared."""
    lines = (re.sub(r"[ \t]+", " ", line) for line in text.splitlines(keepends=True))
    return "".join(re.sub(r"^[- …]*--[- …]*$", "--", line) for line in lines)
