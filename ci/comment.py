"""The report as Markdown for the pull request. Untrusted words are shown as text, never as markup."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from rich.markdown import Markdown

from ci.changed import frozen_suites
from ci.report import PluginReport, Report, is_waiting
from neuco_core.boards.build import build_board
from neuco_core.boards.formatting import with_values
from neuco_core.boards.report import leading_cells
from neuco_core.contract.contract import Finding
from neuco_core.errors import NeucoError
from neuco_core.records.model import Key, Record
from neuco_core.records.store import read_all
from neuco_core.specs import Suite
from neuco_core.text import counted, join_names, one_line

MARK = "<!-- neuco: the score of this pull request -->"
LONGEST = 60_000  # GitHub takes 65,536 characters
MOST_FAILURES = 20  # above the tables, which have all of them
SIGNS = {"ok": "✅", "warning": "⚠️", "failed": "❌", "skipped": "⏭️"}
SANDBOX = "Contributed code has no network, no secrets and no labels there."
ITS_OWN_CLAIM = "This pull request changes the code that judges it: the verdict below is its own claim"
_ENTITIES = {ord(char): f"&#{ord(char)};" for char in string.punctuation}
TAGS = re.compile(r"<!--.*?-->|</?(?:code|sub|details|summary)(?: open)?>")
WORDS = {sign: status.upper() if status == "failed" else status for status, sign in SIGNS.items()}


def text(value: object, most: int = 600) -> str:
    """Untrusted words: punctuation as entities, inside ``<code>``, where nothing is linked and nobody is notified."""
    line = one_line(str(value), most)
    return f"<code>{line.translate(_ENTITIES)}</code>" if line else ""


def summary(report: Report) -> str:
    """A few lines for the log."""
    lines = [f"{f.status:8} {f.check} {f.subject}: {f.detail}" for f in report.findings]
    return "\n".join(
        [*lines, f"{report.verdict}: {len(report.records)} records, sandbox {report.sandbox}, {report.seconds} s"]
    )


def render(report: Report, records: Sequence[Record], registry: Path, core: Sequence[str] = ()) -> str:
    """The whole comment. ``core`` are files of the pull request that judge it, as far as others than it know."""
    core = core or report.core
    parts = [MARK, _headline(report, bool(core)), _next(report, bool(core))]
    if core:
        names = join_names([*map(text, core)])
        claim = "" if report.green else f"⚠️ {ITS_OWN_CLAIM}. "  # of a green one it is the headline
        parts.append(f"{claim}It changes {names}. No record is published after such a merge.")
    published = read_all(registry) if records else []
    parts += _ranks(report, records, published, registry)
    parts += [_plugin(plugin, records, published) for plugin in report.plugins]
    if report.general:
        parts += ["### The pull request as a whole", _findings(report.general)]
    cost = f"{len(records)} records, {report.seconds:.1f} s, sandbox: {report.sandbox}"
    foot = f"<sub>{cost}. {SANDBOX} Judged: {report.head}.</sub>"
    body = "\n\n".join(part for part in parts if part)
    room = LONGEST - len(foot)
    if len(body) > room:
        body = body[: body.rindex("\n", 0, room - 200)] + "\n\n</details>\n\n… cut: the run's report has the rest."
    return f"{body}\n\n{foot}\n"


def _headline(report: Report, judges_itself: bool) -> str:
    failed = [finding for finding in report.findings if finding.status == "failed"]
    if report.green and judges_itself:
        return f"## ⚠️ {ITS_OWN_CLAIM}"
    if report.green:
        warnings = [finding for finding in report.findings if finding.status == "warning"]
        return "## ✅ Ready for review" + (f", with {counted(len(warnings), 'warning')}" if warnings else "")
    if report.verdict == "waiting":
        return "## ⏳ Ready for a maintainer: not everything could be done here, by no fault of the contributor"
    if failed:
        return f"## ❌ {counted(len(failed), 'check')} failed"
    return "## ❌ No check completed"


def _plugin(plugin: PluginReport, records: Sequence[Record], published: Sequence[Record]) -> str:
    parts = [f"### {plugin.tree}/{plugin.name} ({plugin.how})"]
    if plugin.findings:
        parts.append(_findings(plugin.findings))
    elif plugin.how != "removed":
        parts.append("❌ No check completed, so this plugin cannot pass.")
    mine = [r for r in records if r.task in plugin.tasks or r.method in plugin.methods]
    scored = [r for r in mine if r.ok]
    if scored:
        parts.append(_scores([*scored, *_rivals(scored, published)], {record.key for record in scored}))
    reasons: dict[tuple[str, str], list[str]] = {}  # every skip and every failure; equal reasons once
    for r in mine:
        if not r.ok:
            reasons.setdefault((r.status, r.reason), []).append(f"{r.method} on {r.task}")
    if reasons:
        lines = [f"- {text(how)} {text(', '.join(cells), 300)}: {text(why)}" for (how, why), cells in reasons.items()]
        parts += ["<details><summary>Not scored, and why</summary>", "\n".join(lines), "</details>"]
    return "\n\n".join(parts)


def _findings(findings: Iterable[Finding]) -> str:
    lines = ["| | check | subject | finding |", "|---|---|---|---|"]
    for f in sorted(findings, key=lambda f: f.status != "failed"):
        cure = f"<br>→ {text(f.cure)}" if f.cure and f.status in ("failed", "warning") else ""
        lines.append(f"| {SIGNS[f.status]} | {text(f.check)} | {text(f.subject)} | {text(f.detail)}{cure} |")
    return "\n".join(lines)


def _rivals(scored: Sequence[Record], published: Sequence[Record]) -> list[Record]:
    """What the registry has to compare with: the baselines, and the best of each task and protocol."""
    mine = {record.key for record in scored}
    columns = {(record.task, record.protocol) for record in scored}
    others = [r for r in published if r.ok and (r.task, r.protocol) in columns and r.key not in mine]
    best: dict[tuple[str, str], Record] = {}
    for r in sorted(others, key=lambda r: -(r.q or 0)):
        best.setdefault((r.task, r.protocol), r)
    return [r for r in others if r.baseline or r is best[r.task, r.protocol]]


def _scores(records: Sequence[Record], new: Collection[Key]) -> str:
    lines = ["| method | task | protocol | score | Q | samples |", "|---|---|---|---|---|---|"]
    for r in sorted(records, key=lambda r: (r.task, r.protocol, -(r.q or 0), r.method)):
        value = f"{r.metric} {r.mean:.4f} ± {r.std:.4f}"
        name = text(r.method) + (" (baseline)" if r.baseline else "") + ("" if r.key in new else " (in the registry)")
        used = r.samples.get("used", "")
        lines.append(f"| {name} | {text(r.task)} | {text(r.protocol)} | {text(value)} | {r.q:.2f} | {used} |")
    return "<details open><summary>Scores</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _ranks(report: Report, records: Sequence[Record], published: Sequence[Record], registry: Path) -> list[str]:
    """The places that touched methods would take on the boards of the suites, with the columns of each board."""
    methods = [name for plugin in report.plugins for name in plugin.methods]
    if not methods or not records:
        return []
    pool = {record.key: record for record in (*published, *records)}
    tables = [table for suite in frozen_suites(registry) if (table := _places(list(pool.values()), suite, methods))]
    nothing = "None: no suite is complete for the methods of this pull request."
    return ["### Places on the boards\n\n" + ("\n\n".join(tables) or nothing)]


def _places(records: list[Record], suite: Suite, methods: Collection[str]) -> str:
    chosen = [r for r in records if r.task in suite.tasks and r.protocol == suite.protocol]
    try:
        board = build_board(chosen, suite)
    except NeucoError as error:
        return f"Suite {text(suite.id)}: no board: {text(error)}"
    rows = tuple(row for row in board.rows if row.method in methods and (row.rank or row.same_as))
    columns = with_values(board.columns, rows)
    table = [[f"suite {text(suite.id)}", "rank", *(text(column.label) for column in columns)]]
    table.append(["---"] * len(table[0]))
    for row in rows:
        rank, _, *values = leading_cells(row, columns)
        table.append([text(row.method), text(f"= {row.same_as}" if row.same_as else rank), *map(text, values)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table) if rows else ""


def _next(report: Report, judges_itself: bool) -> str:
    if report.verdict == "waiting":
        reasons = "\n".join(f"- {text(f.subject)}: {text(f.detail)}" for f in report.findings if is_waiting(f))
        what = "a maintainer provides what is missing, or merges it as it is; what was not scored brings no record."
        return f"**Next:** {what}\n\n{reasons}"
    if not report.green:
        places = [("the pull request", report.general), *((f"{p.tree}/{p.name}", p.findings) for p in report.plugins)]
        failed = [(place, f) for place, findings in places for f in findings if f.status == "failed"]
        lines = [
            f"- {place}, {text(f.check)} of {text(f.subject)}: {text(f.detail, 300)}"
            + (f" → {text(f.cure, 300)}" if f.cure else "")
            for place, f in failed[:MOST_FAILURES]
        ]
        if len(failed) > MOST_FAILURES:
            lines.append(f"- and {len(failed) - MOST_FAILURES} more")
        what = "fix what is marked ❌ and push again. `neuco check NAME` shows the same on your machine."
        return "\n".join(lines) + f"\n\n**Next:** {what}"
    if judges_itself:
        return "**Next:** a maintainer reads every line of it, and believes none of what follows."
    return (
        "**Next:** a maintainer reads the code and the card. After the merge the plugins are scored again on main, and "
        "those records are published."
    )


def plain(markdown: str) -> Markdown:
    """Our own Markdown for a terminal. What a stranger wrote has its punctuation as entities, so it is no markup."""
    for sign, word in WORDS.items():
        markdown = markdown.replace(f"| {sign} |", f"| {word} |").replace(f"marked {sign}", f"marked {word}")
    return Markdown(TAGS.sub("", markdown.replace("<br>", " ")))
