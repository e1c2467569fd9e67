"""The board of a challenge: teams by NeuCo-Bench's rule or by mean Q; baselines and the barred do not compete."""

from __future__ import annotations

from neuco_core.boards.cells import BoardMethod, Cells
from neuco_core.boards.model import SCORE, STD, BoardRow, Column, Ranked
from neuco_core.boards.stats.ranking import DIGITS, Rule, positions, rank
from neuco_core.errors import UsageError

BY = {"weighted": Rule().describe(), "mean_q": "mean Q over the tasks"}
BARRED = "barred"  # a value of a team that did not take part where it had to
MEAN_Q = Column("mean_q", "Mean Q", "Mean of Q over the tasks, of the submission that the rules say", "higher")
WEIGHTED = Column("weighted_rank", "Weighted rank", "Sum of weight × rank over the tasks", "lower", 2)
COUNT = Column("submissions", "Submissions", "Public submissions that were scored", format="integer")
Q = Column("q", "Q", "Quality score: the mean score, less where it varies between splits", "higher", 2)
NOT_COMPETING = {True: "of the hosts: shown, not competing", False: "did not take part in an earlier phase"}


def rank_cells(cells: Cells, by: str = "weighted") -> Ranked:
    """A team's rank is made of its cells; its values ``mean_q`` and ``submissions`` are shown as they are given."""
    if by not in BY:
        raise UsageError("a challenge is not ranked so", expected=f"one of {', '.join(BY)}", got=by)
    places, weighted = ranks(cells, by)
    ordered = sorted(cells.methods, key=lambda m: (places.get(m.id, len(places) + 1), -(m.values["mean_q"] or 0), m.id))
    rows = tuple(_row(cells, method, places, weighted) for method in ordered)
    columns = (MEAN_Q, *((WEIGHTED,) if weighted else ()), COUNT)
    return Ranked(columns=columns, rows=rows, rule=BY[by], cell_columns=(SCORE, STD, Q))


def ranks(cells: Cells, by: str = "weighted") -> tuple[dict[str, int], dict[str, float]]:
    """By team its rank and, under NeuCo-Bench's rule, its weighted rank; only of those that compete."""
    names = [m.id for m in cells.methods if not m.baseline and not m.values.get(BARRED) and cells.complete(m)]
    if not names:
        return {}, {}
    columns = [place for place, m in enumerate(cells.methods) if m.id in set(names)]
    q = cells.numbers("q")[:, columns]
    if by == "mean_q":
        return dict(zip(names, positions(-q.mean(axis=0).round(DIGITS)).tolist(), strict=True)), {}
    found = rank(q)
    final, weighted = found.final.tolist(), found.weighted.tolist()
    return dict(zip(names, final, strict=True)), dict(zip(names, weighted, strict=True))


def _row(cells: Cells, method: BoardMethod, places: dict[str, int], weighted: dict[str, float]) -> BoardRow:
    values = {key: value for key, value in method.values.items() if key != BARRED}
    if method.id in weighted:
        values[WEIGHTED.key] = weighted[method.id]
    note = "" if method.id in places else NOT_COMPETING[method.baseline]
    own = {t.id: (c := cells.cell(method.id, t.id)).shown(values={"q": c.q} if c.scored else {}) for t in cells.tasks}
    return method.row(places.get(method.id), own, values=values, note=note)
