"""When a team may see an answer: at whole ticks, so that the time tells nothing of the evaluation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from neuco_extensions.challenge.journal import Submission
from neuco_extensions.challenge.rules import Challenge


def whole_second(moment: datetime, tick: int) -> datetime:
    """The first whole multiple of ``tick`` seconds after a moment."""
    return datetime.fromtimestamp((moment.timestamp() // tick + 1) * tick, UTC)


def is_visible(own: Submission, challenge: Challenge, now: datetime) -> bool:
    """Whether a team may see the answer now. After the end of a phase no time can tell anything any more."""
    at = visible_at(own, challenge.limits.tick)
    return at is not None and (at <= now or challenge.phase(own.phase).end <= now)


def visible_at(own: Submission, tick: int) -> datetime | None:
    """When a team may see the answer: at the second tick after its receipt, or the next one after it was finished.

    As long as evaluations take less than a tick this follows from the time of receipt alone, and tells nothing.
    """
    if own.finished is None:
        return None
    earliest = whole_second(datetime.fromisoformat(own.received), tick) + timedelta(seconds=tick)
    finished = datetime.fromisoformat(own.finished)
    return earliest if finished <= earliest else whole_second(finished, tick)
