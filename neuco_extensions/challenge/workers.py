"""Evaluation by the workers of neuco's runs, here or on another engine; this process keeps the journal to itself.

A worker only reads rules, labels and files, in the challenge's folder, and sends back what it found. It is ended where
it takes too long or too much memory, and started anew when it dies. The submission of a worker that died is tried
again; the attempt counts, for the file may be what killed it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from neuco_core.errors import NeucoError
from neuco_core.runs.engine import EngineLike, StepLimits, open_engine
from neuco_core.runs.messages import Call, CallContext, Failed, Group, Result, Returned, Skipped
from neuco_extensions.challenge.evaluate import PhaseError
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import JournalEntry, Verdict
from neuco_extensions.challenge.rules import Challenge

POLL = 0.5  # seconds between two looks for work
LONGEST_PAUSE, GOOD_LIFE = 60.0, 60.0  # seconds: between two starts, and after which a start is said to have gone well
PATIENCE = 10.0  # seconds that the evaluation gets to give its submissions back
# Memory that reading a file may take: about twice what good files took, up to 8.5 times their size with 1,024
# dimensions, and 200 bytes an id with one; and what the libraries take, with which a worker starts.
LIBRARIES = 1 << 30
BY_BYTE, BY_ID = 16, 512
log = logging.getLogger("neuco.challenge")


def memory_limit(challenge: Challenge) -> int:
    """Bytes: what unpacks to far more than its size fails, and nothing else.

    It follows from the rules alone. So no label can be learned from it, and an audit meets it, too.
    """
    limits = challenge.limits
    ids = max(len(challenge.ids(phase)) for phase in challenge.phases)
    return LIBRARIES + BY_BYTE * max(limits.bytes, 4 * ids * limits.dim) + BY_ID * ids


def start_engine(name: str, jobs: int) -> EngineLike:
    """An engine for so many evaluations at once.

    The local one has a worker more, which is never used: an idle worker is asked for all the time, so that a server
    which stops need not wait until an evaluation ends.
    """
    return open_engine(name, jobs + 1 if name == "local" else jobs)


@lru_cache(maxsize=1)
def _host(folder: str) -> Host:
    """The challenge as a worker sees it; labels are read once. It never opens the journal."""
    return Host(folder)


def evaluate_call(context: CallContext, folder: str, phase: str, path: str, name: str) -> dict[str, Any]:
    """What a worker does. The hosts' fault, whatever it is, is said to be theirs."""
    try:
        verdict = _host(folder).evaluate(phase, Path(path), name=name, threads=context.threads)
    except (NeucoError, OSError) as error:
        return {"hosts_fault": str(error)}
    return {"verdict": msgspec.to_builtins(verdict)}


def _call(host: Host, entry: JournalEntry, threads: int) -> Group:
    arguments = {
        "folder": host.challenge.folder,
        "phase": entry.phase,
        "path": str(host.file_path(entry)),
        "name": entry.name,
    }
    return Group((Call(f"{__name__}:evaluate_call", arguments, label=entry.name, threads=threads),))


def _verdict(result: Result) -> Verdict:
    """What came of a call; what is the hosts' fault is raised."""
    if isinstance(result, Failed):  # too much memory, or an odd file that nobody foresaw
        return Verdict("failed", detail=result.reason)
    if not isinstance(result, Returned):
        raise PhaseError(result.reason if isinstance(result, Skipped) else "no result of an evaluation")
    if "hosts_fault" in result.value:
        raise PhaseError(result.value["hosts_fault"])
    return msgspec.convert(result.value["verdict"], Verdict)


def evaluate_waiting(
    host: Host, engine: EngineLike, jobs: int, *, threads: int = 1, stop: threading.Event | None = None
) -> Iterator[JournalEntry]:
    """Evaluate all that waits, ``jobs`` at a time, and yield each submission with its verdict.

    With ``stop`` it waits for more until that is set; then what is under way is given back.
    """
    leased: dict[str, JournalEntry] = {}

    def waiting() -> Iterator[Group | None]:
        next_look = 0.0
        while stop is None or not stop.is_set():
            entry = None
            if len(leased) < jobs and time.monotonic() >= next_look:
                entry = host.journal.lease(host.challenge.limits.attempts)
                if entry is None:
                    if stop is None and not leased:
                        return
                    next_look = time.monotonic() + POLL
            if entry is None:
                yield None
            else:
                leased[entry.name] = entry
                yield _call(host, entry, threads)
        raise InterruptedError("the evaluation was stopped")

    limits = StepLimits(memory=memory_limit(host.challenge))
    try:
        for step, result in engine.run(waiting(), limits):
            entry = leased[step.label]
            if isinstance(result, Failed) and result.kind in ("crash", "timeout"):
                log.warning("%s is tried again, if it may: %s", entry.name, result.reason)
                host.journal.give_back(leased.pop(entry.name), counts=True)
                continue
            verdict = _verdict(result)
            del leased[entry.name]
            yield host.settle(entry, verdict)
    except InterruptedError:
        return
    finally:
        for entry in leased.values():
            host.journal.give_back(entry, counts=False)


def evaluate_again(
    host: Host, entries: Iterable[JournalEntry], engine: EngineLike, *, threads: int = 1
) -> Iterator[tuple[JournalEntry, Verdict | NeucoError]]:
    """Score submissions and keep nothing, for an audit."""
    by_name = {entry.name: entry for entry in entries}
    calls = [_call(host, entry, threads) for entry in by_name.values()]
    for step, result in engine.run(calls, StepLimits(memory=memory_limit(host.challenge))):
        entry = by_name[step.label]
        try:
            yield entry, _verdict(result)
        except NeucoError as error:
            yield entry, error


class EvaluationThread:
    """Evaluates what comes while a server runs, as a context. Whatever goes wrong is logged, and it starts again."""

    def __init__(self, folder: Path, jobs: int, engine: str = "local") -> None:
        self._folder, self._jobs, self._engine = folder, jobs, engine
        self._stop = threading.Event()
        # A daemon: a cluster that does not answer must not keep the server from ending.
        self._thread = threading.Thread(target=self._run, name="evaluation", daemon=True)

    def _run(self) -> None:
        pause = 1.0
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                engine = start_engine(self._engine, self._jobs)
                with Host(self._folder) as host:
                    for entry in evaluate_waiting(host, engine, self._jobs, stop=self._stop):
                        log.info("submission %d of %s in %s: %s", entry.id, entry.team, entry.phase, entry.state)
            except Exception as error:
                pause = 1.0 if time.monotonic() - begun > GOOD_LIFE else min(2 * pause, LONGEST_PAUSE)
                log.warning("the evaluation stopped, and starts again in %.0f s: %s", pause, error)
                self._stop.wait(pause)

    def __enter__(self) -> EvaluationThread:
        if self._jobs:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._jobs:
            self._thread.join(PATIENCE)
