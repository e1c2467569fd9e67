"""Runs what a document shows: every ``console`` block, with its output compared, and every ``python`` block."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command with the output that the document shows, or one piece of Python."""

    line: int
    command: str
    expected: tuple[str, ...] = ()
    python: bool = False


def play(text: str, folder: Path, environment: dict[str, str], names: dict[str, Any]) -> list[str]:
    """Do all that a page shows, in its order; what did not happen as shown is returned, one text for each step.

    The Python blocks are run in this process and in one namespace, ``names``, as a reader would type them.
    """
    failures = []
    for step in steps(text):
        if step.python:
            exec(compile("\n" * (step.line - 1) + step.command, "page", "exec"), names)
            continue
        done = run(step, folder, environment)
        meant = not any(line.startswith("neuco: error") for line in step.expected)
        if (done.returncode == 0) != meant or not matches(step.expected, done.stdout):
            told = f"line {step.line}: {step.command}\nended with {done.returncode}"
            failures.append("\n".join([told, done.stdout, "not", *step.expected]))
    return failures


def steps(text: str) -> list[Step]:
    listed: list[Step] = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        listed += [Step(line, match[2], python=True)] if match[1] == "python" else _commands(match[2], line)
    return listed


def _commands(block: str, first: int) -> list[Step]:
    commands: list[Step] = []
    for offset, text in enumerate(block.splitlines()):
        if text.startswith("$ "):
            commands.append(Step(first + offset, text[2:]))
        else:
            commands[-1] = replace(commands[-1], expected=(*commands[-1].expected, text))
    return commands


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
