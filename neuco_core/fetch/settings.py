"""Settings for fetching, from environment variables; read at each call, never changed."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from neuco_core.env import switched_on
from neuco_core.errors import UsageError

GIB = 1 << 30


@dataclass(frozen=True)
class Settings:
    """``timeout`` is for connecting and for each wait for data, in seconds; ``retries`` come after the first try.

    A download with all its tries may take ``deadline`` seconds, and one more for each ``min_speed`` bytes received.
    """

    offline: bool = False
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    deadline: float = 600.0
    min_speed: float = 10_000.0
    max_bytes: int = 4 * GIB
    hf_endpoint: str = "https://huggingface.co"

    @classmethod
    def from_environment(cls, values: Mapping[str, str] | None = None) -> Settings:
        values = os.environ if values is None else values
        return cls(
            offline=switched_on("NEUCO_OFFLINE", values),
            timeout=_number(values, "NEUCO_TIMEOUT", cls.timeout, above=0),
            retries=int(_number(values, "NEUCO_RETRIES", cls.retries, above=-1)),
            backoff=_number(values, "NEUCO_BACKOFF", cls.backoff, above=-1),
            deadline=_number(values, "NEUCO_DEADLINE", cls.deadline, above=0),
            min_speed=_number(values, "NEUCO_MIN_SPEED", cls.min_speed, above=0),
            max_bytes=int(_number(values, "NEUCO_MAX_BYTES", cls.max_bytes, above=0)),
            hf_endpoint=(values.get("HF_ENDPOINT") or cls.hf_endpoint).rstrip("/"),
        )


def _number(values: Mapping[str, str], name: str, default: float, above: float) -> float:
    text = values.get(name, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not above < number < math.inf:
        raise UsageError(f"bad {name}", expected=f"a number above {above:g}", got=repr(text))
    return number
