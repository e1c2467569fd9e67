"""Runs a command in a pseudo-terminal of a given width, as a person sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def neuco_in_terminal(*args: str, columns: int = 80, **environment: str) -> str:
    """What ``neuco`` writes to a terminal, styles included; it must succeed. What it warns of goes elsewhere."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "neuco_core.cli", *args]
    variables = {**kept, "TERM": "xterm", **environment}
    with tempfile.TemporaryFile() as warnings:
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=warnings, env=variables) as process:
            os.close(theirs)
            written = read_terminal(ours)
        os.close(ours)
        warnings.seek(0)
        assert process.returncode == 0, warnings.read().decode()
    return written.decode().replace("\r\n", "\n")


def read_terminal(terminal: int, again: bytes = b"") -> bytes:
    """All that is written until the other end is closed; where nothing is for long, a person types ``again``."""
    parts: list[bytes] = []
    while True:
        # A key that is pressed as a question begins to read may be lost.
        while again and not select.select([terminal], [], [], 15)[0]:
            os.write(terminal, again)
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def unstyled(text: str) -> str:
    return STYLE.sub("", text)


def converse(*args: str, until: str, then: bytes, **environment: str) -> tuple[int, str]:
    """Run ``neuco`` before a person who types ``then`` once ``until`` is on the screen: exit code and screen."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "neuco_core.cli", *args]
    variables = {**os.environ, "TERM": "dumb", "COLUMNS": "200", **environment}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, preexec_fn=_own_terminal
    ) as process:
        os.close(theirs)
        screen = b""
        while until.encode() not in screen:
            assert process.poll() is None, screen.decode()
            screen += os.read(ours, 65536)
        os.write(ours, then)
        screen += read_terminal(ours, again=then)
        os.close(ours)
    return process.returncode, unstyled(screen.decode().replace("\r\n", "\n"))


def _own_terminal() -> None:
    """In the child: the terminal on its stdin is its own, so that Ctrl-C typed there reaches it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
