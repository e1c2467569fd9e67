"""Runs what a document shows: every ``console`` and ``python`` block, and compares its output.

Output of Python is in a block ``text`` right behind it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e[-+]?\d+)?(?!\w|\.\d)")
# A score on another processor may differ in the last digit shown, or a small p-value in its second.
LAST_PLACES, SMALL = 2, 0.02
FENCE = re.compile(r"^```(console|python)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


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
            with redirect_stdout(StringIO()) as printed:
                exec(compile("\n" * (step.line - 1) + step.command, "page", "exec"), names)
            code, output, wanted = 0, printed.getvalue(), step.expected or ("…",)
        else:
            done = run(step, folder, environment)
            code, output, wanted = done.returncode, done.stdout, step.expected
        meant = not any(line.startswith("neuco: error") for line in step.expected)
        if (code == 0) != meant or not matches(wanted, output):
            failures.append("\n".join([f"line {step.line}: {step.command}\nended with {code}", output, "not", *wanted]))
    return failures


def steps(text: str) -> list[Step]:
    listed: list[Step] = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if match[1] == "python":
            listed.append(Step(line, match[2], tuple((match[3] or "").splitlines()), python=True))
        else:
            listed += _commands(match[2], line)
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
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**own, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _home(word: str, environment: dict[str, str]) -> str:
    return environment["HOME"] + word[1:] if word.startswith("~/") else word


def matches(expected: tuple[str, ...], output: str) -> bool:
    """``…`` stands for anything within a line; alone on a line, for any lines. Widths do not count.

    Numbers with a point may differ in their last places, as they do on another processor.
    """
    match = re.fullmatch("".join(map(_line, expected)), _even(output))
    shown = [number for line in expected for number in NUMBER.findall(line)]
    return match is not None and all(map(close, shown, match.groups()))


def close(shown: str, printed: str) -> bool:
    """Whether a number on a page is the one that the command printed, up to two units of its last place."""
    unit = 10.0 ** -len(shown.partition("e")[0].partition(".")[2])
    scale = SMALL * abs(float(shown)) if "e" in shown else LAST_PLACES * unit
    return abs(float(shown) - float(printed)) <= scale + 1e-12


def _line(text: str) -> str:
    if text == "…":
        return r"(?:[^\n]*\n)*"
    parts = (NUMBER.sub("\0", part) for part in _even(text).split("…"))
    return ".*".join(re.escape(part).replace("\0", f"({NUMBER.pattern})") for part in parts) + r"\n"


def _even(text: str) -> str:
    """The width of a column depends on what is in it, so neither blanks nor rules are compared."""
    lines = (re.sub(r"[ \t]+", " ", re.sub(r"[ \t]+$", "", line)) for line in text.splitlines(keepends=True))
    return "".join(re.sub(r"^[- …]*--[- …]*$", "--", line) for line in lines)
