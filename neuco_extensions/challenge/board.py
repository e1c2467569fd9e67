"""The boards of a challenge: of a phase while it is open, and the final one with all that the rules say.

While a phase is open, a team stands by what it was told: its last public submission that climbed the ladder, with the
number that was published, and that number alone makes its rank. Were the board made of exact scores, nobody would need
the answers: whoever has two teams could see which of two files is better where both are told the same. The final board
is made of exact scores, of the submissions that the rules name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from neuco_core.boards.build import rank_cells
from neuco_core.boards.cells import BoardMethod, Cell, Cells, record_cell
from neuco_core.boards.model import Board, BoardSuite, BoardTask
from neuco_core.boards.replay import Snapshot, TeamRank, Version, replay
from neuco_core.errors import DataError
from neuco_extensions.challenge.board_kind import BARRED, ranks
from neuco_extensions.challenge.host import Host
from neuco_extensions.challenge.journal import Submission
from neuco_extensions.challenge.rules import Challenge, Phase
from neuco_extensions.challenge.ticks import is_visible


class Counted(NamedTuple):
    """The submission that a team is ranked by, the mean Q that is shown, and the number of its public submissions."""

    ranked: Submission
    mean_q: float
    times: int


def counted(phase: Phase, submissions: Iterable[Submission], *, final: bool) -> dict[str, Counted]:
    """By team what counts. ``submissions`` are those of the phase; the time of receipt makes one the last."""
    public: dict[str, list[Submission]] = {}
    for own in sorted(submissions, key=_receipt):
        if own.public and own.state == "scored":
            public.setdefault(own.team, []).append(own)
    found = {}
    for team, all_own in public.items():
        if not final and phase.feedback == "ladder":
            climbed = max((own for own in all_own if own.rung == own.id), key=lambda own: own.place or 0, default=None)
            if climbed:
                found[team] = Counted(climbed, climbed.feedback["mean_q"], len(all_own))
            continue
        best = max(all_own, key=lambda own: (_mean_q(own), -own.id))
        shown = all_own[-1] if phase.mean_q == "last" else best
        ranked = all_own[-1] if phase.ranked == "last" else best
        number = _mean_q(shown) if final else shown.feedback["mean_q"]
        found[team] = Counted(ranked, number, len(all_own))
    return found


def _receipt(own: Submission) -> tuple[str, int]:
    """What came by mail, or from EvalAI's queue, may be entered after what came later."""
    return own.received, own.id


def _mean_q(own: Submission) -> float:
    if own.mean_q is None:
        raise DataError("a submission without a score", where=own.name)
    return own.mean_q


def final_board(host: Host, phase: str) -> Board:
    """The exact board of a phase, with the scores by task: for hosts, and for everybody after the end."""
    rules, hidden = host.challenge.phase(phase), host.hidden(phase)
    chosen = counted(rules, host.journal.submissions(phase), final=True)
    cells: dict[tuple[str, str], Cell] = {}
    for team, own in chosen.items():
        # Without the hash of its embeddings: two teams with the same file tie, and neither is the copy of the other.
        cells |= {(team, r.task): replace(record_cell(r), embeddings="") for r in host.records(own.ranked)}
    tasks = [BoardTask(name, task.version, task.dataset, task.kind, task.metric) for name, task in hidden.tasks.items()]
    made = Cells(tuple(tasks), _methods(host, phase, chosen), cells)
    about = _about(host.challenge, phase, {task.id: task.version for task in tasks})
    return rank_cells(made, "challenge", {"by": rules.rank_by}, suite=about)


def live_board(host: Host, phase: str, *, now: datetime | None = None) -> Board:
    """What anybody may see while the phase is open: ranks and published numbers, nothing by task."""
    rules = host.challenge.phase(phase)
    seen = _seen(host, phase, now or datetime.now(UTC))
    chosen = counted(rules, seen, final=False)
    made = _bare_cells(_methods(host, phase, chosen), chosen, final=False)
    board = rank_cells(made, "challenge", {"by": "mean_q"}, suite=_about(host.challenge, phase, {}))
    rows = tuple(msgspec.structs.replace(row, cells={}) for row in board.rows)
    return msgspec.structs.replace(board, rows=rows, tasks=(), cell_columns=(), cells="")


def _seen(host: Host, phase: str, now: datetime) -> list[Submission]:
    """The submissions whose answers are visible: the board must not tell earlier."""
    if not host.challenge.phase(phase).visible:
        raise DataError(f"the board of phase {phase} is not shown before its end", where=host.challenge.id)
    return [own for own in host.journal.submissions(phase) if is_visible(own, host.challenge, now)]


def history(host: Host, phase: str, *, final: bool, now: datetime | None = None) -> tuple[Version, ...]:
    """The board after each submission that changed it: who moved, and because of whom."""
    rules = host.challenge.phase(phase)
    every = host.journal.submissions(phase) if final else _seen(host, phase, now or datetime.now(UTC))
    every.sort(key=_receipt)
    by = rules.rank_by if final else "mean_q"
    snapshots = []
    for place, own in enumerate(every, 1):
        if own.public and own.state == "scored":
            chosen = counted(rules, every[:place], final=final)
            methods = _methods(host, phase, chosen)
            places = ranks(_bare_cells(methods, chosen, final=final), by)[0]
            teams = {name: TeamRank(places.get(name), one.mean_q) for name, one in chosen.items()}
            snapshots.append(Snapshot(own.received[:19] + "Z", teams, (own.team,)))
    return replay(snapshots)


def _bare_cells(methods: Sequence[BoardMethod], chosen: Mapping[str, Counted], *, final: bool) -> Cells:
    """The cells of the ranked submissions with nothing but Q, as the journal has it; before the end what was told."""
    q = {team: own.ranked.scores if final else own.ranked.feedback for team, own in chosen.items()}
    names = sorted({task for own in q.values() for task in own})
    cells = {(team, task): Cell(q=value) for team, own in q.items() for task, value in own.items()}
    return Cells(tuple(BoardTask(name) for name in names), tuple(methods), cells)


def _methods(host: Host, phase: str, chosen: Mapping[str, Counted]) -> tuple[BoardMethod, ...]:
    rules = host.challenge.phase(phase)
    took_part = [{s.team for s in host.journal.submissions(name) if s.state == "scored"} for name in rules.after]
    found = []
    for team, own in sorted(chosen.items()):
        if (about := host.challenge.teams.get(team)) is None:
            hint = "Bring the team back: what it submitted is in the journal"
            raise DataError(f"team {team!r} has submissions and is not in the rules", hint=hint)
        values: dict[str, int | float | None] = {"mean_q": own.mean_q, "submissions": own.times}
        if not all(team in earlier for earlier in took_part):
            values[BARRED] = 1
        found.append(BoardMethod(team, baseline=about.host, title=about.title, values=values))
    return tuple(found)


def _about(challenge: Challenge, phase: str, tasks: dict[str, int]) -> BoardSuite:
    rules = challenge.phase(phase)
    name, title = f"{challenge.id}-{phase}", f"{challenge.title}: {phase}"
    return BoardSuite(name, title, 1, f"{rules.protocol}+k={rules.k}", tasks)
