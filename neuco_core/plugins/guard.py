"""Running a plugin's own code, so that whatever it raises or ends becomes an error with the plugin's name.

This is for plugins that are broken. One that means harm can still end the process, e.g. from C: where its author is
not trusted, it runs in the sandbox of ``ci``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import NoReturn


class Interrupted(KeyboardInterrupt):
    """The user's interrupt. A plain ``KeyboardInterrupt`` out of plugin code was raised by that code itself."""


@contextmanager
def plugin_code() -> Iterator[None]:
    """Run code of a plugin: what it prints goes to stderr, since stdout may be JSON that a program reads from us."""
    with _telling_interrupts(), _no_exit(), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _telling_interrupts() -> Iterator[None]:
    # Python allows handlers in the main thread only; in others no signal raises anything.
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted


@contextmanager
def _no_exit() -> Iterator[None]:
    """Let ``os._exit`` raise: a command that ends without a word and with exit code 0 looks like a success."""
    leave, here = os._exit, (threading.get_ident(), os.getpid())

    def refuse(status: int) -> NoReturn:
        if here != (threading.get_ident(), os.getpid()):
            leave(status)  # the child of a fork, or a thread that watches over this process
        raise RuntimeError(f"it calls os._exit({status}), which would end the whole process")

    modules = (os, sys.modules[os.name])  # os takes the function over from posix or nt
    for module in modules:
        module._exit = refuse  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module._exit = leave  # type: ignore[attr-defined]
        if os.getpid() != here[1]:
            leave(1)  # a fork that was left running would go on as a second neuco
