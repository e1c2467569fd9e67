"""Where an encoder computes (``cuda``, ``mps``, ``cpu``) and how precisely, and how memory runs out there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from neuco_core.env import requirement_name
from neuco_core.errors import UsageError

if TYPE_CHECKING:
    from neuco_core.specs import Method

VARIABLE = "NEUCO_DEVICE"
FOUND = "auto"
KINDS = ("cuda", "mps", "cpu")
PRECISIONS = ("float32", "bfloat16", "float16")
# What allocators say where torch has no type of its own for it.
WORDS = ("out of memory", "can't allocate memory", "cannot allocate memory")


def uses_torch(method: Method) -> bool:
    return "torch" in map(requirement_name, method.requires)


def choose_device(method: Method, wanted: str = "") -> str:
    """The device for a method: the one that is asked for, by option or by ``NEUCO_DEVICE``, else the best there is.

    An exact method stays on the processor: no other device gives the same bits.
    """
    asked = wanted or os.environ.get(VARIABLE, "") or FOUND
    if asked != FOUND and asked.partition(":")[0] not in KINDS:
        raise UsageError("unknown device", expected=", ".join((*KINDS, "cuda:NUMBER", FOUND)), got=repr(asked))
    if method.tolerance == 0 or not uses_torch(method):
        if wanted and asked not in (FOUND, "cpu"):
            why = "its numbers are exact" if method.tolerance == 0 else "it does not require torch"
            hint = "Leave out --device" if method.tolerance == 0 else "Declare Method(requires=('torch',))"
            raise UsageError(f"method {method.id!r} runs on the CPU only: {why}", got=asked, hint=hint)
        return "cpu"
    there = found_devices()
    if asked == FOUND:
        return there[0]
    if asked.partition(":")[0] not in there:
        raise UsageError(f"torch finds no device {asked!r} here", expected=" or ".join(there), got=asked)
    return asked


def found_devices() -> tuple[str, ...]:
    """The kinds of devices that torch can use here, the fastest first."""
    import torch

    usable = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return tuple(kind for kind in KINDS if usable[kind])


def move(method: Method, encoder: Any, device: str, *, asked: bool) -> str:
    """Bring an encoder to a device by its ``to(device)``; one that has none stays where it is, on the processor."""
    if hasattr(encoder, "to"):
        encoder.to(device)
        return device
    if asked:
        what = f"the encoder of method {method.id!r} has no to(device), so it runs on the CPU only"
        raise UsageError(what, got=device)
    return "cpu"


@contextmanager
def steady() -> Iterator[None]:
    """Algorithms of CUDA that give the same numbers every time, and float32 that is float32.

    Without this, convolutions are free to use 10 of the 23 bits of a number, and to choose another algorithm each time.
    """
    import torch

    cudnn: Any = torch.backends.cudnn
    with cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        yield


def mixed(device: str, precision: str = "float32") -> AbstractContextManager[Any]:
    """For encoders: the context in which a network computes, with ``precision`` for what may be computed roughly."""
    if precision not in PRECISIONS:
        raise UsageError("bad parameter precision", expected="one of " + ", ".join(PRECISIONS), got=repr(precision))
    if precision == "float32":
        return nullcontext()
    import torch

    context: AbstractContextManager[Any] = torch.autocast(device.partition(":")[0], getattr(torch, precision))
    return context


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may help."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in WORDS)


def let_go(device: str) -> None:
    """Give back what torch keeps for later, before a smaller batch is tried."""
    if device != "cpu":
        import torch

        kind: Any = getattr(torch, device.partition(":")[0])
        kind.empty_cache()
