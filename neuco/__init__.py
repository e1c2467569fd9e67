"""The public names of neuco: ``import neuco``, then ``neuco.load_task``, ``neuco.evaluate``, ``neuco.Method`` …"""

from __future__ import annotations

import neuco_core
from neuco_core import __version__ as __version__

TYPE_CHECKING = False  # checkers read every name from here; at run time each is imported when it is first used
if TYPE_CHECKING:
    from neuco_core import *  # noqa: F403

__all__ = neuco_core.__all__


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'neuco' has no attribute {name!r}")
    return getattr(neuco_core, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
