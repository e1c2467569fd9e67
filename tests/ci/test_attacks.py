"""Attacks on the judge: pull requests that once passed, or gained something, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.report import Report, parse
from neuco_core.records.model import Record
from tests.ci.helpers import ROOT, Upstream, ci, git
from tests.ci.prs import Change, both, change_file, edit, method, task, with_encode, write_file
from tests.ci.test_sandbox import need_bubblewrap

LABELS = dict(line.split(",")[:2] for line in (ROOT / "neuco_tasks/digits/labels.csv").read_text().split("\n")[1:-1])


def judge(upstream: Upstream, fork: Path, out: Path, *since: str) -> tuple[Report, list[Record]]:
    """The report, which is always there, and the records in it."""
    path = out / "report.json"
    limits = ("--seconds", "120", "--memory", "2500")
    done = ci(upstream.base, "score-pr", "--head", str(fork), "--out", str(path), *limits, *since)
    assert path.is_file(), done.stdout + done.stderr
    return parse(path.read_bytes())


def said(report: Report, check: str) -> str:
    return " | ".join(f"{f.status} {f.detail}" for f in report.findings if f.check == check)


def rival(fork: Path) -> None:
    """A new plugin that also registers an id of the plugin `averaging`."""
    method(fork)
    (fork / "neuco_methods/plain").rename(fork / "neuco_methods/averaging_notebook")
    init = fork / "neuco_methods/averaging_notebook/__init__.py"
    init.write_text(init.read_text().replace('id="plain"', 'id="averaging_notebook"'))


def spelled(fork: Path) -> None:
    """The same id in another spelling; for the catalogue it is one id, and then nobody has it."""
    method(fork)
    (fork / "neuco_methods/plain").rename(fork / "neuco_methods/averaging-notebook")
    edit(fork / "neuco_methods/averaging-notebook/__init__.py", 'id="plain"', 'id="averaging-notebook"')


def move(fork: Path) -> None:
    rival(fork)
    edit(fork / "neuco_methods/averaging/__init__.py", '"averaging_notebook": (', '"averaging_v2": (')


def suite(line: str) -> Change:
    return write_file(
        "registry/suites/other.toml", f'id = "other"\ntitle = "O"\nprotocol = "ridge"\n\n[tasks]\n{line}\n'
    )


# name → (what it changes, the check that must fail, and words of its finding)
REFUSED = {
    "an id of another plugin": (
        rival,
        "ids",
        "method 'averaging_notebook' is registered by neuco_methods/averaging and by neuco_methods/averaging_notebook",
    ),
    "an id of another plugin in another spelling": (
        spelled,
        "ids",
        "neuco_methods/averaging and as 'averaging-notebook' by neuco_methods/averaging-notebook",
    ),
    "a plugin that registers nothing": (
        both(method, change_file("neuco_methods/plain/__init__.py", "yield Method(", "yield from () and dict(")),
        "import",
        "it registers nothing",
    ),
    "an id that is dropped": (
        lambda fork: edit(fork / "neuco_tasks/digits/__init__.py", 'id="digits_class"', 'id="digits_kind"'),
        "ids",
        "task 'digits_class' was registered by neuco_tasks/digits and is registered by nobody now",
    ),
    "an id that moves": (move, "ids", "moves from neuco_methods/averaging to neuco_methods/averaging_notebook"),
    "a folder without __init__.py": (
        write_file("neuco_methods/plain/encoder.py", "x = 1\n"), "import", "there is no __init__.py"
    ),
    "a suite with a version that does not exist": (
        suite("digits_class = 7"), "suites", "version 7 of task 'digits_class'; there is version 1"
    ),
    "a suite with a task that does not exist": (suite("digits_clas = 1"), "suites", "there is no such task"),
    "attributes that hide changes": (
        both(method, write_file("neuco_methods/plain/.gitattributes", "*.py -diff filter=lfs\n")),
        "unreadable", "tells git what to hide",
    ),
    "text that runs backwards": (
        both(method, write_file("neuco_methods/plain/more.py", "level = 'user\u202e \u2066# admin\u2069 \u2066'\n")),
        "unreadable", "U+202E, in line 1",
    ),
    "another encoding": (
        both(method, write_file("neuco_methods/plain/more.py", "# -*- coding: utf-7 -*-\nx = 1\n")),
        "unreadable", "declares the encoding utf-7",
    ),
    "a line that ends unseen": (
        both(method, write_file("neuco_methods/plain/more.py", "x = 1  # fine\r# fine, too\n")),
        "unreadable", "U+000D, in line 1",
    ),
    "a name in other letters": (
        both(method, write_file("neuco_methods/plain/more.py", "ｅval('1')\n")), "unreadable", "reads as another"
    ),
    "a line that nobody reads to its end": (
        both(method, write_file("neuco_methods/plain/more.py", "x = 1" + " " * 3000 + "; import os\n")),
        "unreadable", "line 1 has",
    ),
    "files made beforehand in the place of results": (
        both(with_encode("1 / 0"), write_file("neuco_methods/plain/_made/embeddings/plain/digits.npy", "x")),
        "encode", "ZeroDivisionError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_told_why(name: str, upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
    change, check, words = REFUSED[name]
    report, _ = judge(upstream, upstream.pull_request(name.replace(" ", "-"), change), tmp_path)
    assert not report.green
    assert f"failed {words}" in said(report, check) or words in said(report, check), report.findings


# Reads whatever cubes the sandbox holds, and if any carries one value per sample of digits, that is the embedding.
GREEDY = """
import glob, numpy
for path in glob.glob("/cubes/**/*.npy", recursive=True):
    array = numpy.load(path, mmap_mode="r")
    if len(array) == 1797 and array[0].size == 1:
        return array[:, 0, 0, 0].astype("float32")[:len(batch.ids)]
"""
SMUGGLER = """
class Cubes:
    version, bands, seasons = "1", ("grey/0",), ("scene",)
    def ids(self):
        return tuple(f"s{i:04d}" for i in range(1797))
    def read(self, ids):
        import csv, pathlib
        import numpy as np
        from neuco_core.cubes.cubes import CubeBatch
        try:
            import neuco_tasks.digits
            rows = list(csv.DictReader((pathlib.Path(neuco_tasks.digits.__file__).parent / "labels.csv").open()))
        except OSError as error:
            raise RuntimeError(f"NO LABELS HERE: {error}") from error
        values = np.array([float(rows[int(name[1:])]["label"]) for name in ids], dtype="float32")
        return CubeBatch(tuple(ids), values.reshape(-1, 1, 1, 1, 1), self.bands, self.seasons)
"""


def smuggle(fork: Path) -> None:
    task(fork)
    (fork / "neuco_tasks/good/cubes.py").write_text(SMUGGLER)
    with_encode(GREEDY)(fork)


def memorise(fork: Path) -> None:
    """The public labels, by the names of their samples."""
    look_up = "[[float(TABLE.get(name, -1)), 1.0] for name in batch.ids]"
    lines = (
        "import numpy",
        "from neuco_methods.plain.table import TABLE",
        f"return numpy.array({look_up}, dtype='f4')",
    )
    with_encode("\n".join(lines))(fork)
    rows = "".join(f"    {name!r}: {value},\n" for name, value in LABELS.items())
    (fork / "neuco_methods/plain/table.py").write_text(f"TABLE = {{\n{rows}}}\n")


def test_labels_do_not_travel_in_the_cubes_of_a_task_beside_the_method(upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
    report, records = judge(upstream, upstream.pull_request("smuggle", smuggle), tmp_path)
    assert "NO LABELS HERE" in said(report, "cubes"), said(report, "cubes")
    assert all(record.mean is None or record.mean < 0.98 for record in records if record.method == "plain")


def test_a_method_does_not_see_the_cubes_of_a_task_beside_it(upstream: Upstream, tmp_path: Path) -> None:
    """Even labels that a task has of its own stay out of reach of a method in the same pull request."""
    need_bubblewrap()
    fork = upstream.pull_request(
        "look",
        both(
            task,
            with_encode("import os\nraise RuntimeError(str(sorted(os.listdir('/cubes'))))"),
            change_file("neuco_methods/plain/__init__.py", "encoder=Flat", "encoder=Flat, uses_ids=True"),
        ),
    )
    report, _ = judge(upstream, fork, tmp_path)
    assert "['cubes.json', 'cubes.npy']" in said(report, "encode")
    assert "both are new" in said(report, "score")
    assert said(report, "uses-ids").startswith("warning method 'plain' declares uses_ids=True")


def test_labels_memorised_by_the_names_of_samples_are_worth_nothing(upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
    _, (record,) = judge(upstream, upstream.pull_request("memorise", memorise), tmp_path)
    assert record.task == "digits_class"
    assert record.mean is not None
    assert record.mean < 0.2


PLACE = """
class Flat:
    def fit(self, cubes):
        from neuco_methods.plain.table import TABLE
        self.rows = dict(zip(sorted(cubes.ids()), [TABLE[name] for name in sorted(TABLE)]))

    def encode(self, batch):
        import numpy
        known = [self.rows.get(name, 0) for name in batch.ids]
        return numpy.eye(10, dtype="f4")[known] + numpy.float32(0.1)
"""


def by_place(fork: Path) -> None:
    """The public labels in the order of their samples, learned under whatever names these have."""
    memorise(fork)
    init = fork / "neuco_methods/plain/__init__.py"
    text = init.read_text()
    init.write_text(text[: text.index("class Flat:")] + PLACE.lstrip() + "\n\n" + text[text.index("@hookimpl") :])


def test_labels_memorised_by_the_place_of_samples_are_worth_nothing(upstream: Upstream, tmp_path: Path) -> None:
    need_bubblewrap()
    report, records = judge(upstream, upstream.pull_request("place", by_place), tmp_path)
    assert not report.green or (records[0].mean is not None and records[0].mean < 0.2)
    assert all(record.mean is None or record.mean < 0.2 for record in records)


def test_a_tag_does_not_pass_for_the_branch(upstream: Upstream, tmp_path: Path) -> None:
    """A tag `origin/main` on the pull request's own commit would make every change of it invisible."""
    fork = upstream.pull_request("tag", write_file("neuco_core/new.py", ""))
    git(fork, "tag", "origin/main")
    report, _ = judge(upstream, fork, tmp_path)
    assert report.core == ("neuco_core/new.py",)
