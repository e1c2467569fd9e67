"""Functions that workers are asked to call, as those of an extension are."""

from __future__ import annotations

import os
import sys

from neuco_core.errors import DataError
from neuco_core.runs.messages import CallContext


def triple(call: CallContext, number: int) -> dict[str, int]:
    return {"result": 3 * number}


def fail(call: CallContext, number: int) -> None:
    raise DataError(f"{number} will not do")


def leave(call: CallContext, number: int) -> None:
    os._exit(3)


def shout(call: CallContext) -> None:
    print("somebody should see this", file=sys.stderr, flush=True)
