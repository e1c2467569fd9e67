"""Reports that a stranger wrote: refused or shown as harmless text, never partly applied."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from ci.comment import LONGEST, MARK, plain, render, summary, text
from ci.github import unpack
from ci.report import LARGEST, PluginReport, Report, parse
from neuco_core.contract.contract import MOST_WORDS, Finding
from neuco_core.errors import DataError, NeucoError
from neuco_core.files import hashed
from neuco_core.records.model import Record, record_line
from neuco_core.scoring.quality import summarize
from neuco_core.text import clean, one_line

SHA = "a" * 40
FINDING = {"check": "score", "subject": "s", "status": "ok", "detail": "d", "cure": ""}
PLUGIN = {
    "tree": "neuco_methods",
    "name": "plain",
    "how": "added",
    "tasks": [],
    "methods": ["plain"],
    "findings": [FINDING],
}
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</code><b>bold</b>",
    "@everyone and @some-team",
    "fixes #1, closes #2",
    "[a link](https://example.org)",
    "https://example.org www.example.org a@example.org",
    "| a | table |\n|---|---|\n| row | row |",
    "```\ncode\n```",
    "# heading\n\n- list\n\n---",
    "**bold** _italic_ ~~gone~~ `tick` \\",
    "<!-- neuco: the score of this pull request -->",
    "&lt;b&gt; &#60;b&#62;",
    "\x1b[31mred\x1b[0m\r\nnext",
    "::error::forged\n::set-output name=x::y",
    "##[error]forged ##[add-mask]e",
    "\u202egnorw\u202c \u200bzero",
    "$(touch /tmp/x) `touch /tmp/x` ; touch /tmp/x",
    "\ud800 lone",
    "",
]


def record(method: str = "plain", task: str = "digits_class", **more: Any) -> str:
    """A record that is right in every way."""
    inputs: dict[str, Any] = {
        "method": method, "method_version": 1, "task": task, "task_version": 1, "dataset": "digits",
        "kind": "classification", "metric": "f1_macro", "protocol": "ridge+k=5", "splitter": "random",
        **dict.fromkeys(("labels", "labels_from", "embeddings", "embeddings_from"), "0" * 64),
        **dict.fromkeys(("metric_code", "probe_code", "splitter_code", "scorer", "strict_code"), "v1"),
    }  # fmt: skip
    shared = {name: inputs[name] for name in ("method", "method_version", "task", "task_version", "dataset")}
    shared |= {name: inputs[name] for name in ("kind", "metric", "protocol")}
    splits = (0.5, 0.6)
    mean, std, q = summarize(splits, True) or (0, 0, 0)
    numbers = {"per_split": splits, "mean": mean, "std": std, "q": q, "samples": {"used": 10}}
    fields = {**shared, "status": "ok", "greater_is_better": True, **numbers, **more}
    return record_line(Record(**fields, inputs=inputs, fingerprint=hashed(inputs))).decode()


def report(**more: Any) -> dict[str, Any]:
    fields = {"schema": 1, "base": SHA, "head": SHA, "sandbox": "bubblewrap", "plugins": [PLUGIN], "general": []}
    return {**fields, "records": [], "core": [], "seconds": 1.0, **more}


def a_plugin(findings: tuple[Finding, ...] = ()) -> PluginReport:
    return PluginReport("neuco_tasks", "x", "added", (), (), findings)


def a_report(plugins: tuple[PluginReport, ...] = (), general: tuple[Finding, ...] = ()) -> Report:
    return Report(SHA, SHA, "bubblewrap", plugins, general, (), (), 1.0, 1)


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry")
    (folder / "suites").mkdir()
    return folder


class Tags(HTMLParser):
    """All tags and attributes of a text."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(markdown)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def harmless(comment: str) -> None:
    """Only our own markup; whatever came from outside is in ``<code>`` with its punctuation as entities."""
    assert comment.startswith(MARK)
    assert len(comment) <= LONGEST + 1000
    assert Tags(comment).tags <= {"code", "br", "details", "summary", "sub"}
    assert Tags(comment).attributes <= {"open"}
    for message in re.findall(r"<code>(.*?)</code>", comment, re.DOTALL):
        plain = re.sub(r"&#\d+;", "", message)
        assert not set(plain) & set("<>&@#[](){}`*_~|\\:/!$\n\r\x1b")
    outside = re.sub(r"<code>.*?</code>", "", comment, flags=re.DOTALL)
    assert not re.search(r"@|https?:|example|alert|touch|\x1b|::", outside)


def test_a_good_report_is_taken(registry: Path) -> None:
    parsed, records = parse(raw(report(records=[record()])))
    assert (parsed.green, [item.method for item in records]) == (True, ["plain"])
    harmless(render(parsed, records, registry))


@pytest.mark.parametrize("message", HOSTILE)
def test_hostile_words_are_shown_as_words(message: str, registry: Path) -> None:
    finding = dict.fromkeys(FINDING, message) | {"detail": message or "x", "status": "failed"}
    plugin = {**PLUGIN, "findings": [finding]}
    # Characters that steer a terminal are refused in records; the rest of the message must do no harm.
    reason = clean(message.encode("utf-8", "replace").decode()) or "x"
    texts = [record(status="skipped", reason=reason, per_split=(), samples={}, mean=None, std=None, q=None)]
    parsed, records = parse(raw(report(plugins=[plugin], general=[finding], records=texts)))
    harmless(render(parsed, records, registry))
    lines = summary(parsed).splitlines()
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


BAD: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a list": [],
    "null": None,
    "no fields": {},
    "one field more": report(extra=1),
    "one field less": {key: value for key, value in report().items() if key != "schema"},
    "an unknown field with a long name": report(**{"x\n" * 10_000: 1}),
    "text for a number": report(seconds="1"),
    "NaN": b'{"seconds": NaN}',
    "infinity": raw(report()).replace(b'"seconds": 1.0', b'"seconds": Infinity'),
    "a number without end": raw(report()).replace(b'"seconds": 1.0', b'"seconds": 1e999'),
    "digits without end": raw(report()).replace(b'"seconds": 1.0', b'"seconds": ' + b"9" * 5000),
    "a large number": report(seconds=10**400),
    "time backwards": report(seconds=-1),
    "true for a number": report(seconds=True),
    "schema as true": report(schema=True),
    "schema 2": report(schema=2),
    "deep": b"[" * 100_000,
    "deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "deep inside": report(general=json.loads("[" * 500 + "]" * 500)),
    "huge": b" " * (LARGEST + 1),
    "many findings": report(general=[FINDING] * 6000),
    "long message": report(general=[{**FINDING, "detail": "x" * (MOST_WORDS + 1)}]),
    "a finding without a reason": report(general=[{**FINDING, "status": "skipped", "detail": " "}]),
    "a status of its own": report(general=[{**FINDING, "status": "great"}]),
    "a commit that is none": report(head="main; touch /tmp/x"),
    "a sandbox of its own": report(sandbox="none"),
    "a path as a name": report(plugins=[{**PLUGIN, "name": "../../etc"}]),
    "a path as a method": report(plugins=[{**PLUGIN, "methods": ["../plain"]}]),
    "HTML as a name": report(plugins=[{**PLUGIN, "name": "<b>"}]),
    "another tree": report(plugins=[{**PLUGIN, "tree": "neuco_core"}]),
    "a method of another plugin": report(plugins=[{**PLUGIN, "methods": ["random"]}]),
    "a plugin twice": report(plugins=[PLUGIN, PLUGIN]),
    "a record of another method": report(records=[record("random")]),
    "a record twice": report(records=[record(), record()]),
    "a record that is no text": report(records=[{}]),
    "a record that is no record": report(records=["{}"]),
    "a record with a path": report(records=[record().replace("digits_class", "../../x")]),
    "an edited record": report(records=[record().replace("0.5", "0.9")]),
    "a record with NaN": report(records=[record().replace("0.5", "NaN")]),
    "a record without end": report(records=[record().replace("0.5", "1e999")]),
    "a deep record": report(records=["[" * 100_000]),
    "a good record and a bad one": report(records=[record(), "{}"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_reports_are_refused_with_one_line(name: str) -> None:
    data = BAD[name] if isinstance(BAD[name], bytes) else raw(BAD[name])
    with pytest.raises(DataError) as caught:
        parse(data)
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PARTS = {"report": sorted(report()), "plugin": sorted(PLUGIN), "finding": sorted(FINDING)}


@RELAXED
@given(data=st.data(), part=st.sampled_from(sorted(PARTS)), value=JSON)
def test_any_value_in_any_field(data: st.DataObject, part: str, value: object, registry: Path) -> None:
    changed = {data.draw(st.sampled_from(PARTS[part])): value}
    finding = FINDING | (changed if part == "finding" else {})
    plugin = PLUGIN | {"findings": [finding]} | (changed if part == "plugin" else {})
    fields = {"plugins": [plugin]} | (changed if part == "report" else {})
    refused_or_harmless(raw(report(**fields)), registry)


@RELAXED
@given(position=st.integers(min_value=0), junk=st.binary(max_size=6))
def test_any_bytes_anywhere(position: int, junk: bytes, registry: Path) -> None:
    data = raw(report(records=[record()]))
    at = position % len(data)
    refused_or_harmless(data[:at] + junk + data[at + len(junk) :], registry)


def refused_or_harmless(data: bytes, registry: Path) -> None:
    try:
        parsed, records = parse(data)
    except NeucoError:
        return
    harmless(render(parsed, records, registry))


@given(message=st.text())
def test_any_text_is_one_line_of_letters_and_entities(message: str) -> None:
    shown = text(message)
    assert "\n" not in shown
    assert not set(re.sub(r"&#\d+;", "", shown.removeprefix("<code>").removesuffix("</code>"))) & set("<>&@`|[")


def test_a_long_text_keeps_both_ends() -> None:
    shown = one_line("what it is about" + "x" * 5000 + "why", 100)
    assert (len(shown), shown[:16], shown[-4:]) == (100, "what it is about", "xwhy")


def test_a_comment_that_is_too_long_is_cut_between_lines(registry: Path) -> None:
    findings = tuple(Finding("check", f"s{i}", "failed", "<b>" * 300) for i in range(500))
    made = a_report(plugins=(a_plugin(findings),))
    shown = render(*parse(made.to_bytes()), registry)
    harmless(shown)
    assert len(shown) < 65_536
    assert "cut: the run's report has the rest" in shown
    assert not re.search(r"<code>[^<]*\n", shown)


@pytest.mark.parametrize(
    ("general", "plugins", "verdict"),
    [
        ([], [], "red"),
        ([("a", "skipped")], [], "red"),
        ([("a", "ok")], [], "green"),
        ([], [[]], "red"),
        ([("a", "ok")], [[]], "red"),
        ([], [[("import", "ok"), ("tests", "ok")]], "red"),
        ([], [[("import", "ok"), ("method-card", "skipped")]], "red"),
        ([], [[("import", "ok"), ("score", "ok")]], "green"),
        ([], [[("method-files", "ok")]], "green"),
        ([], [[("method-files", "ok"), ("card", "warning")]], "green"),
        ([], [[("method-files", "ok"), ("waiting", "skipped")]], "waiting"),
        ([], [[("waiting", "skipped")]], "red"),
        ([], [[("method-files", "ok"), ("waiting", "skipped"), ("score", "failed")]], "red"),
        ([], [[("method-files", "ok"), ("waiting", "ok")]], "green"),
    ],
)
def test_the_verdict_needs_evidence_and_no_failure(
    general: list[tuple[str, Any]], plugins: list[list[tuple[str, Any]]], verdict: str, registry: Path
) -> None:
    def findings(rows: list[tuple[str, Any]]) -> tuple[Finding, ...]:
        return tuple(Finding(check, "x", status, "words") for check, status in rows)

    made = a_report(tuple(a_plugin(findings(rows)) for rows in plugins), findings(general))
    assert (made.verdict, made.green) == (verdict, verdict == "green")
    assert {"red": "## ❌", "green": "## ✅", "waiting": "## ⏳"}[verdict] in render(made, [], registry)


def test_what_failed_and_what_to_do_stands_right_under_the_headline(registry: Path) -> None:
    good = [Finding(f"check{i}", "x", "ok", "as it should be") for i in range(100)]
    bad = [Finding("card", "x", "failed", f"no licence {i}", "Write one") for i in range(30)]
    lines = render(a_report(plugins=(a_plugin((*good, *bad)),)), [], registry).splitlines()
    assert lines[2] == "## ❌ 30 checks failed"
    card, subject, reason, cure = map(text, ("card", "x", "no licence 0", "Write one"))
    assert lines[4] == f"- neuco_tasks/x, {card} of {subject}: {reason} → {cure}"
    assert lines[24:27] == [
        "- and 10 more",
        "",
        "**Next:** fix what is marked ❌ and push again. `neuco check NAME` shows the same on your machine.",
    ]
    assert not any(line.startswith(("|", "###")) for line in lines[:27])


def packed(**more: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **more) as archive:
        archive.writestr("report.json", b"a report, a report, a report" * 20)
    return buffer.getvalue()


WHOLE = packed(compression=zipfile.ZIP_DEFLATED)
LZMA = packed(compression=zipfile.ZIP_LZMA)
BROKEN = {
    "nothing": b"",
    "a beginning": b"PK",
    "zeros": b"\0" * 100,
    "a bad checksum": WHOLE[:14] + b"\0\0\0\0" + WHOLE[18:].replace(WHOLE[14:18], b"\0\0\0\0"),
    "encrypted": WHOLE.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\1\0").replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0"
    ),
    # The data begins behind 30 bytes and the name.
    "not deflated": WHOLE[:41] + b"\xff" + WHOLE[42:],
    "not lzma": LZMA[:45] + b"\xff" + LZMA[46:],
    "another name": WHOLE.replace(b"report.json", b"REPORT.json"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_artefact_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="holds no report") as caught:
        unpack(BROKEN[name])
    assert len(str(caught.value)) < 500


@settings(max_examples=200, deadline=None)
@given(
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]),
    edits=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 30),
)
def test_any_archive_is_read_or_refused(method: int, edits: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(packed(compression=method))
    for place, value in edits:
        data[place % len(data)] = value
    with contextlib.suppress(DataError):
        assert len(unpack(bytes(data[: len(data) - cut]))) <= LARGEST + 1


LONG = "the images do not tell the labels: " + "averaging reaches 0.01, shuffled labels 0.02; " * 6


def a_long_report() -> Report:
    findings = (
        Finding("task-headroom", "ink", "warning", LONG, "Say | why & how in the <card>"),
        Finding("card", "ink", "failed", "the card still asks: Say here \x1b[31mwhat", "Write it"),
    )
    return a_report(plugins=(a_plugin(findings),))


def test_on_a_terminal_no_markup_is_left(registry: Path) -> None:
    console = Console(width=90)
    with console.capture() as capture:
        console.print(plain(render(a_long_report(), [], registry)))
    shown = capture.get()
    assert max(map(len, shown.splitlines())) <= 90
    words = " ".join(shown.split())
    assert "❌ 1 check failed" in words
    assert "fix what is marked FAILED" in words
    assert re.search(r"Say \| why & how in.* the <card>", words), "what a contributor wrote is as it was"
    assert not any(mark in shown for mark in ("<code>", "<details", "&#", "|---", "\x1b", "**"))


def test_a_terminal_gets_text_and_a_pipe_markdown(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(a_long_report().to_bytes())
    command = [sys.executable, "-m", "ci", "comment", "--report", str(path)]
    piped = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert piped == render(a_long_report(), [], root / "registry")
    ours, theirs = pty.openpty()
    subprocess.run(command, cwd=root, stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    assert "<code>" not in shown
    assert "1 check failed" in shown
