"""The worker process: ``python -m neuco_core.runs.worker_main IN OUT SCRATCH`` reads steps and writes reports.

IN and OUT are file descriptors of pipes, SCRATCH is a folder that the owner removes. Whatever the code under test
prints goes elsewhere. The process ends when IN is closed, also in the middle of a step: a run that was killed leaves
no workers behind.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import IO

from neuco_core.plugins import catalog
from neuco_core.plugins.source import compiled_apart, run_from_source
from neuco_core.runs.messages import Ready, Report, StepShare, Warned, decode_step, encode
from neuco_core.runs.worker_steps import WorkerSteps
from neuco_core.text import one_line


def main(read_from: int, write_to: int, scratch: str) -> None:
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever runs the engine decides what an interrupt means
    with contextlib.suppress(OSError):  # where memory is short, Linux ends a worker, and not its owner
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    steps: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(read_from, "rb"), steps), daemon=True).start()
    run_from_source(everywhere=True)
    catalog.catalog().plugins.candidates  # noqa: B018 - finds the plugins, and imports none
    with os.fdopen(write_to, "wb", buffering=0) as out, compiled_apart(scratch):

        def tell(report: Report) -> None:
            out.write(encode(report) + b"\n")

        class Warnings(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                tell(Warned(one_line(record.getMessage())))

        logging.getLogger("neuco_core").addHandler(Warnings(logging.WARNING))
        worker = WorkerSteps(lambda share: tell(StepShare(share)))
        tell(Ready())
        while True:
            tell(worker.do(decode_step(steps.get())))


def _listen(lines: IO[bytes], steps: queue.SimpleQueue[bytes]) -> None:
    for line in lines:
        steps.put(line)
    os._exit(0)  # not sys.exit: the main thread may be busy for hours with a step that nobody wants any more


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
