"""The worker process: ``python -m neuco_core.runs.worker IN OUT SCRATCH`` reads steps and writes results, a line each.

IN and OUT are file descriptors of pipes, SCRATCH is a folder that the owner removes. Whatever the code under test
prints goes elsewhere. The process ends when IN is closed, also in the middle of a step: a run that was killed leaves
no workers behind.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any


def main(read_from: int, write_to: int, scratch: str) -> None:
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever runs the engine decides what an interrupt means
    steps: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(read_from, "r", encoding="utf-8"), steps), daemon=True).start()
    # Imported before the worker is ready: the seconds that this takes are nobody's.
    import neuco_core.encode.run
    import neuco_core.scoring.scorer  # noqa: F401
    from neuco_core.plugins import catalog
    from neuco_core.plugins.source import compiled_apart, run_from_source
    from neuco_core.runs.steps import Step
    from neuco_core.runs.work import Work
    from neuco_core.text import one_line

    run_from_source(everywhere=True)
    catalog.catalog().plugins.candidates  # noqa: B018 - finds the plugins, and imports none
    with os.fdopen(write_to, "w", encoding="utf-8", buffering=1) as out, compiled_apart(scratch):

        def tell(message: dict[str, Any]) -> None:
            out.write(json.dumps(message, allow_nan=False) + "\n")

        class Warnings(logging.Handler):
            """What neuco warns of in a worker is for the owner to say: nobody reads the worker's own output."""

            def emit(self, record: logging.LogRecord) -> None:
                tell({"status": "warning", "text": one_line(record.getMessage())})

        logging.getLogger("neuco_core").addHandler(Warnings(logging.WARNING))
        work = Work(lambda share: tell({"status": "progress", "share": share}))
        tell({"status": "ready"})
        while True:
            tell(work.do(Step(**json.loads(steps.get()))))


def _listen(lines: Iterable[str], steps: queue.SimpleQueue[str]) -> None:
    for line in lines:
        steps.put(line)
    os._exit(0)  # not sys.exit: the main thread may be busy for hours with a step that nobody wants any more


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
