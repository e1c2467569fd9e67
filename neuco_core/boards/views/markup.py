"""A board for documents: a table in Markdown or LaTeX, with what must be said of it."""

from __future__ import annotations

import re

from neuco_core.boards.views.report import Grid


def to_markdown(grid: Grid) -> str:
    lines = ["| " + " | ".join(map(_markdown, row)) + " |" for row in (grid.headers, *grid.rows)]
    lines.insert(1, "|" + "|".join("---" if i == 1 else "---:" for i in range(len(grid.headers))) + "|")
    return "\n".join([*lines, "", *(f"- {_markdown(note)}" for note in grid.notes)]) + "\n"


def to_latex(grid: Grid) -> str:
    """A tabular for the booktabs package; the notes are comments above it."""
    columns = "rl" + "r" * (len(grid.headers) - 2)
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in (grid.headers, *grid.rows)]
    notes = [f"% {' '.join(note.split())}" for note in grid.notes]
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return "\n".join([*notes, *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _markdown(text: str) -> str:
    """Names are strangers' words: no markup, no second line, no cell of their own."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$!])", r"\\\1", " ".join(text.split()))


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX |= {"λ": r"$\lambda$", "↓": r"$\downarrow$"}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in " ".join(text.split()))
