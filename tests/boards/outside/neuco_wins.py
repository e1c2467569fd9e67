"""A kind of board as a package of its own: on how many tasks is a method the best? Baselines do not compete."""

from neuco_core import BoardKind, hookimpl


def by_wins(cells, *, margin=0.0):
    """A win is a score within ``margin`` of the best; its interval is what one split more or less would make of it."""
    from neuco_core.boards.model import Column, Interval, Ranked

    competing = [m for m in cells.methods if cells.complete(m) and not m.baseline]
    wins = {m.id: sum(_wins(cells, m, task, competing, margin, None) for task in cells.tasks) for m in competing}
    rows = []
    for method in sorted(competing, key=lambda m: (-wins[m.id], m.id)):
        rank = 1 + sum(other > wins[method.id] for other in wins.values())
        splits = range(min(len(cells.cell(method.id, task.id).splits) for task in cells.tasks))
        counts = [sum(_wins(cells, method, t, competing, margin, s) for t in cells.tasks) for s in splits]
        ends = {"wins": Interval(min(counts), max(counts))}
        values = {"wins": wins[method.id], "medal": "gold" if rank == 1 else "–"}
        rows.append(method.row(rank, cells.shown(method), values=values, intervals=ends))
    for method in cells.methods:
        if method.id not in wins:
            note = "baselines do not compete" if method.baseline else ""
            rows.append(method.row(None, cells.shown(method), note=note))
    help_ = "Tasks on which the method is best"
    columns = (Column("wins", "Wins", help_, "higher", format="integer"), Column("medal", "Medal", format="text"))
    rule = f"number of tasks won, within a margin of {margin:g}"
    return Ranked(columns=columns, rows=tuple(rows), rule=rule, profile="score")


def _wins(cells, method, task, competing, margin, split):
    sign = 1 if task.greater_is_better else -1
    cells_of_all = [cells.cell(m.id, task.id) for m in (method, *competing)]
    mine, *scores = [sign * (cell.mean if split is None else cell.splits[split]) for cell in cells_of_all]
    return mine >= max(scores) - margin


@hookimpl
def neuco_boards():
    yield BoardKind(id="wins", title="Number of tasks won", rank=by_wins, options={"margin": 0.0})
