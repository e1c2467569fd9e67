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
from operator import attrgetter
from typing import NamedTuple

import msgspec

from neuco_core.boards.build import rank_cells
from neuco_core.boards.cells import BoardMethod, Cell, Cells, record_cell
from neuco_core.boards.model import SCORE, STD, Board, BoardRow, BoardSuite, BoardTask, Column, Ranked
from neuco_core.boards.stats.ranking import DIGITS, Rule, positions, rank
from neuco_core.errors import DataError, UsageError
from neuco_extensions.challenge.host import Host, is_visible, visible_at
from neuco_extensions.challenge.journal import JournalEntry
from neuco_extensions.challenge.past import Snapshot, TeamRank, Version, replay
from neuco_extensions.challenge.rules import Challenge, Phase

RANK_BY = {"weighted": Rule().describe(), "mean_q": "mean Q over the tasks"}
# What came by mail, or from EvalAI's queue, may be entered after what came later.
RECEIPT = attrgetter("received", "id")
BARRED = "barred"  # a value of a team that did not take part where it had to
MEAN_Q = Column("mean_q", "Mean Q", "Mean of Q over the tasks, of the submission that the rules say", "higher")
WEIGHTED = Column("weighted_rank", "Weighted rank", "Sum of weight × rank over the tasks", "lower", 2)
COUNT = Column("submissions", "Submissions", "Public submissions that were scored", format="integer")
Q = Column("q", "Q", "Quality score: the mean score, less where it varies between splits", "higher", 2)
NOTE_OF_HOST, NOTE_OF_BARRED = "of the hosts: shown, not competing", "did not take part in an earlier phase"


def rank_teams(cells: Cells, by: str = "weighted") -> Ranked:
    """The board kind: teams by NeuCo-Bench's rule or by mean Q; baselines and the barred do not compete.

    A team's rank is made of its cells; its values ``mean_q`` and ``submissions`` are shown as they are given.
    """
    if by not in RANK_BY:
        raise UsageError("a challenge is not ranked so", expected=f"one of {', '.join(RANK_BY)}", got=by)
    ranks, weighted = team_ranks(cells, by)
    rows: list[BoardRow] = []
    for team in sorted(
        cells.methods, key=lambda m: (ranks.get(m.id, len(ranks) + 1), -(m.values["mean_q"] or 0), m.id)
    ):
        values = {key: value for key, value in team.values.items() if key != BARRED}
        if team.id in weighted:
            values[WEIGHTED.key] = weighted[team.id]
        note = ""
        if team.id not in ranks:
            note = NOTE_OF_HOST if team.baseline else NOTE_OF_BARRED
        shown = {}
        for task in cells.tasks:
            cell = cells.cell(team.id, task.id)
            shown[task.id] = cell.shown(values={"q": cell.q} if cell.scored else {})
        rows.append(team.row(ranks.get(team.id), shown, values=values, note=note))
    columns = (MEAN_Q, WEIGHTED, COUNT) if weighted else (MEAN_Q, COUNT)
    return Ranked(columns=columns, rows=tuple(rows), rule=RANK_BY[by], cell_columns=(SCORE, STD, Q))


def team_ranks(cells: Cells, by: str = "weighted") -> tuple[dict[str, int], dict[str, float]]:
    """By team its rank and, under NeuCo-Bench's rule, its weighted rank; only of those that compete."""
    names, columns = [], []
    for column, team in enumerate(cells.methods):
        if not team.baseline and not team.values.get(BARRED) and cells.complete(team):
            names.append(team.id)
            columns.append(column)
    if not names:
        return {}, {}
    q = cells.numbers("q")[:, columns]
    if by == "mean_q":
        return dict(zip(names, positions(-q.mean(axis=0).round(DIGITS)).tolist(), strict=True)), {}
    ranked = rank(q)
    final, weighted = ranked.final.tolist(), ranked.weighted.tolist()
    return dict(zip(names, final, strict=True)), dict(zip(names, weighted, strict=True))


class Counted(NamedTuple):
    """The submission that a team is ranked by, the mean Q that is shown, and the number of its public submissions."""

    ranked: JournalEntry
    mean_q: float
    times: int


def counted(phase: Phase, submissions: Iterable[JournalEntry], *, final: bool) -> dict[str, Counted]:
    """By team what counts. ``submissions`` are those of the phase; the time of receipt makes one the last."""
    by_team: dict[str, list[JournalEntry]] = {}
    for entry in sorted(submissions, key=RECEIPT):
        if entry.public and entry.state == "scored":
            by_team.setdefault(entry.team, []).append(entry)
    counts = {}
    for team, entries in by_team.items():
        if not final and phase.feedback == "ladder":
            climbed = [entry for entry in entries if entry.rung == entry.id]
            if climbed:
                last = max(climbed, key=lambda entry: entry.answer_number or 0)
                counts[team] = Counted(last, last.feedback["mean_q"], len(entries))
            continue
        best = max(entries, key=lambda entry: (entry.mean_q or 0.0, -entry.id))
        shown = entries[-1] if phase.mean_q == "last" else best
        ranked = entries[-1] if phase.ranked == "last" else best
        number = shown.mean_q or 0.0 if final else shown.feedback["mean_q"]
        counts[team] = Counted(ranked, number, len(entries))
    return counts


def final_board(host: Host, phase: str) -> Board:
    """The exact board of a phase, with the scores by task: for hosts, and for everybody after the end."""
    rules, hidden = host.challenge.phase(phase), host.hidden(phase)
    counts = counted(rules, host.journal.submissions(phase), final=True)
    cells: dict[tuple[str, str], Cell] = {}
    for team, count in counts.items():
        for record in host.records(count.ranked):
            # Without the hash of its embeddings: two teams with the same file tie, and neither is the other's copy.
            cells[team, record.task] = replace(record_cell(record), embeddings="")
    tasks = [BoardTask(name, task.version, task.dataset, task.kind, task.metric) for name, task in hidden.tasks.items()]
    suite = _suite(host.challenge, phase, {task.id: task.version for task in tasks})
    teams = _teams(host, phase, counts)
    return rank_cells(Cells(tuple(tasks), teams, cells), "challenge", {"by": rules.rank_by}, suite=suite)


def live_board(host: Host, phase: str, *, now: datetime | None = None) -> Board:
    """What anybody may see while the phase is open: ranks and published numbers, nothing by task."""
    counts = counted(host.challenge.phase(phase), _visible(host, phase, now), final=False)
    cells = _q_cells(_teams(host, phase, counts), counts, final=False)
    board = rank_cells(cells, "challenge", {"by": "mean_q"}, suite=_suite(host.challenge, phase, {}))
    rows = tuple(msgspec.structs.replace(row, cells={}) for row in board.rows)
    return msgspec.structs.replace(board, rows=rows, tasks=(), cell_columns=(), cells="")


def first_shown(host: Host, phase: str) -> datetime | None:
    """From when the open board of a phase has a row, by what has been evaluated; None if that gives none."""
    challenge = host.challenge
    visible = [visible_at(entry, challenge.limits.tick) for entry in host.journal.submissions(phase)]
    for moment in sorted(min(moment, challenge.phase(phase).end) for moment in visible if moment is not None):
        if live_board(host, phase, now=moment).rows:
            return moment
    return None


def _visible(host: Host, phase: str, now: datetime | None) -> list[JournalEntry]:
    """The submissions whose answers are visible: the board must not tell earlier."""
    if not host.challenge.phase(phase).visible:
        raise DataError(f"the board of phase {phase} is not shown before its end", where=host.challenge.id)
    moment = now or datetime.now(UTC)
    return [entry for entry in host.journal.submissions(phase) if is_visible(entry, host.challenge, moment)]


def history(host: Host, phase: str, *, final: bool, now: datetime | None = None) -> tuple[Version, ...]:
    """The board after each submission that changed it: who moved, and because of whom."""
    rules = host.challenge.phase(phase)
    entries = host.journal.submissions(phase) if final else _visible(host, phase, now)
    entries.sort(key=RECEIPT)
    snapshots = []
    for number, entry in enumerate(entries, 1):
        if entry.public and entry.state == "scored":
            counts = counted(rules, entries[:number], final=final)
            cells = _q_cells(_teams(host, phase, counts), counts, final=final)
            ranks = team_ranks(cells, rules.rank_by if final else "mean_q")[0]
            teams = {team: TeamRank(ranks.get(team), count.mean_q) for team, count in counts.items()}
            snapshots.append(Snapshot(entry.received[:19] + "Z", teams, (entry.team,)))
    return replay(snapshots)


def _q_cells(teams: Sequence[BoardMethod], counts: Mapping[str, Counted], *, final: bool) -> Cells:
    """The cells of the ranked submissions with nothing but Q, as the journal has it; before the end what was told."""
    cells: dict[tuple[str, str], Cell] = {}
    for team, count in counts.items():
        values = count.ranked.scores if final else count.ranked.feedback
        cells |= {(team, task): Cell(q=q) for task, q in values.items()}
    tasks = sorted({task for _, task in cells})
    return Cells(tuple(BoardTask(name) for name in tasks), tuple(teams), cells)


def _teams(host: Host, phase: str, counts: Mapping[str, Counted]) -> tuple[BoardMethod, ...]:
    earlier = host.challenge.phase(phase).after
    took_part = [
        {entry.team for entry in host.journal.submissions(name) if entry.state == "scored"} for name in earlier
    ]
    teams = []
    for name, count in sorted(counts.items()):
        rules = host.challenge.teams.get(name)
        if rules is None:
            hint = "Bring the team back: what it submitted is in the journal"
            raise DataError(f"team {name!r} has submissions and is not in the rules", hint=hint)
        values: dict[str, int | float | None] = {"mean_q": count.mean_q, "submissions": count.times}
        if not all(name in participants for participants in took_part):
            values[BARRED] = 1
        teams.append(BoardMethod(name, baseline=rules.host, title=rules.title, values=values))
    return tuple(teams)


def _suite(challenge: Challenge, phase: str, tasks: dict[str, int]) -> BoardSuite:
    rules = challenge.phase(phase)
    name, title = f"{challenge.id}-{phase}", f"{challenge.title}: {phase}"
    return BoardSuite(name, title, 1, f"{rules.protocol}+k={rules.k}", tasks)
