"""How many submissions a team has left, as it may know it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from neuco_extensions.challenge.journal import Submission, stamp
from neuco_extensions.challenge.outcome import UNREAD
from neuco_extensions.challenge.rules import Challenge
from neuco_extensions.challenge.ticks import is_visible


def left(challenge: Challenge, own: Iterable[Submission], *, now: datetime | None = None) -> dict[str, dict[str, int]]:
    """By phase what a team may still send ``today`` (UTC) and ``in_all``; ``own`` are all its submissions.

    A file that cannot be read costs nothing once its team has been told so. Were it given back earlier, the moment
    would tell when it was evaluated.
    """
    moment = now or datetime.now(UTC)
    day, submissions = stamp(moment)[:10], list(own)
    quotas = {}
    for name, phase in challenge.phases.items():
        there = [one for one in submissions if one.phase == name]
        unread = [one for one in there if one.code in UNREAD and is_visible(one, challenge, moment)]
        in_all = phase.in_all - len(there) + len(unread)
        today = phase.per_day - _on(day, there) + _on(day, unread)
        if _on(day, unread) >= challenge.limits.failed_per_day:
            today = 0
        quotas[name] = {"today": max(0, min(today, in_all)), "in_all": max(0, in_all)}
    return quotas


def _on(day: str, submissions: Iterable[Submission]) -> int:
    return sum(one.received[:10] == day for one in submissions)
