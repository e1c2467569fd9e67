"""What ``neuco leaderboard show`` prints on a terminal: the board, what must be said of it, and its details."""

from __future__ import annotations

import click

from neuco_core.boards import report
from neuco_core.boards.model import Board, Section
from neuco_core.cli.output import say, table
from neuco_core.text import common_prefix


def print_board(board: Board, grid: report.Grid, *, details: bool = False) -> None:
    """The title, the table and what must be said below it; what would take more than a line is in the details."""
    title, name = board.about.title, board.about.id
    say(f"{title} ({name})" if title else name)
    right, prefix = set(range(len(grid.headers))) - {1}, _prefix(board)
    click.echo(table(grid.headers, grid.rows, right, drop=grid.drop, prefix=prefix, strong=grid.best))
    for note in grid.brief:
        say(note)
    for section in report.details(board) if details else ():
        click.echo()
        print_section(board, section)


def print_section(board: Board, section: Section) -> None:
    say(section.title)
    if section.lead:
        say(section.lead)
    headers = [column.label for column in section.columns]
    if not section.rows:
        say(section.empty)
    elif any(headers):
        numbers = {i for i, column in enumerate(section.columns) if column.format not in report.TEXT}
        shown = report.lines(board, section)
        click.echo(table(headers, shown, numbers, drop=range(len(headers) - 1, 0, -1), prefix=_prefix(board)))
    else:  # sentences
        for (sentence,) in section.rows:
            say(str(sentence))


def _prefix(board: Board) -> str:
    return common_prefix([task.id for task in board.tasks])
