"""The commands, on a registry of their own with records of registered methods."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from neuco_core.boards.report import grid
from neuco_core.boards.store import board_path
from neuco_core.cli import cli
from neuco_core.errors import DataError, NeucoError, UnknownIdError, UsageError
from neuco_core.files import hashed
from neuco_core.plugins.catalog import load_dataset
from neuco_core.records import fingerprint
from neuco_core.records.fingerprint import stale_records
from neuco_core.records.store import records_file, write_records
from neuco_core.specs import Method
from tests.boards.helpers import make_record, real_record
from tests.command import Said, neuco, neuco_here

TASKS = ("olinda_elevation_mean", "olinda_elevation_std")
MEANS = {"random": 0.0, "averaging": 0.4, "pca": 0.6}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three methods on two tasks, one suite, no board yet."""
    folder = tmp_path / "registry"
    (folder / "suites").mkdir(parents=True)
    lines = 'id = "trial"\ntitle = "A trial"\n[tasks]\n' + "".join(f"{task} = 1\n" for task in TASKS)
    (folder / "suites/trial.toml").write_text(lines, encoding="utf-8")
    hard = np.random.default_rng(1).normal(0, 0.02, 10)
    for method, mean in MEANS.items():
        for task in TASKS:
            write_records(folder, [real_record(method, task, (mean + hard).tolist())])
    monkeypatch.setenv("NEUCO_REGISTRY", str(folder))
    return folder


@pytest.fixture
def digits_ink() -> str:
    """Labels of the digits, which are here without a download."""
    cubes = load_dataset("digits").cubes
    assert cubes is not None
    ids = cubes().ids()
    ink = (cubes().read(ids).values > 8).mean(axis=(1, 2, 3, 4))
    return "id,label\n" + "".join(f"{sample},{value:.5f}\n" for sample, value in zip(ids, ink, strict=True))


def run(*args: object) -> Result:
    result = CliRunner().invoke(cli, ["leaderboard", *map(str, args)])
    if isinstance(result.exception, NeucoError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_boards_are_built_and_checked_and_compared(registry: Path, tmp_path: Path) -> None:
    assert "first version, 3 methods ranked" in run("build").output
    assert "is what the records give, 3 methods ranked" in run("check").output
    path, old = board_path(registry, "trial"), tmp_path / "old.json"
    old.write_bytes(path.read_bytes())
    assert "unchanged" in run("build", "trial").output
    assert path.read_bytes() == old.read_bytes()
    assert run("diff", old, path).output == "nothing changed\n"
    write_records(registry, [real_record("pca", TASKS[0], [0.1, 0.2])])
    with pytest.raises(DataError, match="1 board is out of date"):
        run("check")
    assert "pca has new scores" in run("diff", path).output
    assert "pca" in run("build").output
    run("check")
    assert json.loads(run("diff", old, path, "--json").output)[0]["kind"] == "rescored"
    stray = registry / "leaderboards/evil.json"  # of no suite
    stray.write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="1 board is out of date"):
        run("check")
    run("check", "trial")
    path.write_text("{", encoding="utf-8")
    assert "unreadable" in run("list").output, "a damaged board does not hide the others"


def test_a_bad_record_is_refused_by_every_command(registry: Path) -> None:
    commands = (("build",), ("check",), ("show", "trial"), ("site", "--out", registry / "site"))
    path = records_file(registry, "pca")
    good = path.read_text(encoding="utf-8")
    path.write_text(good.replace('"mean":0.', '"mean":0.1', 1), encoding="utf-8")
    for command in commands:
        with pytest.raises(DataError, match="mean does not follow"):
            run(*command)


def test_records_of_what_is_not_registered_count_nowhere_and_harm_no_board(
    registry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A branch was left, or a package uninstalled; its records stayed."""
    commands = (("build",), ("check",), ("show", "trial", "--json"), ("site", "--out", tmp_path / "site"))
    before = [run(*command).stdout for command in commands]
    origin = {"method": "gone_net 1.2", "task": "ink"}
    ink = make_record("pca", "ink", (0.1, 0.2), provenance={"origin": origin})
    gone = [make_record("gone", task, (0.9, 0.9), provenance={"origin": origin}) for task in TASKS]
    write_records(registry, [ink, *gone])
    caplog.clear()
    assert [run(*command).stdout for command in commands][1:] == before[1:]
    line = (
        "3 records left out, not registered here: method 'gone' (of package gone_net 1.2), task 'ink' (of plugin ink)"
    )
    assert set(caplog.messages) == {f"{line}. `neuco doctor` lists all"}
    assert len(caplog.messages) == len(commands)
    rows = [row["detail"] for row in neuco_here("doctor", "--json").json if row["check"] == "records"]
    assert rows == [
        "6 of registered tasks and methods",
        "2 records of method 'gone' (of package gone_net 1.2), not registered here: on no board",
        "1 record of task 'ink' (of plugin ink), not registered here: on no board",
    ]
    done = neuco_here("verify", "pca/ink", "--json")
    assert (done.code, done.json["checks"][0]["reason"]) == (1, "task 'ink@1' is not registered")


def test_no_suites_is_not_all_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    for command in ("check", "build"):
        with pytest.raises(DataError, match="no suite here"):
            run(command)
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "typo"))
    with pytest.raises(UsageError, match="typo, which does not exist"):
        run("list")


def test_a_stale_record_is_shown_and_not_ranked(registry: Path) -> None:
    record = real_record("pca", TASKS[0], [0.9, 0.8])
    inputs = dict(record.inputs) | {"labels_from": "1" * 64}
    write_records(registry, [real_record("pca", TASKS[0], [0.9, 0.8], inputs=inputs, fingerprint=hashed(inputs))])
    board = json.loads(run("show", "trial", "--format", "json").output)
    assert [(row["method"], row["rank"]) for row in board["rows"]] == [("averaging", 1), ("random", 2), ("pca", None)]
    assert board["rows"][-1]["cells"][TASKS[0]]["reason"].startswith("the label file")
    assert "Not ranked: pca: olinda_elevation_mean: stale, the label file" in run("show", "trial").output
    (row,) = [
        row for row in csv.DictReader(io.StringIO(run("show", "trial", "--format", "csv").output)) if row["reason"]
    ]
    assert (row["method"], row["rank"], row[TASKS[0]]) == ("pca", "", "")
    assert row["reason"].startswith("olinda_elevation_mean: stale, the label file")
    assert float(row[TASKS[1]]) > 0


def test_no_board_is_replaced_by_one_that_lacks_a_method_unless_that_is_said(registry: Path) -> None:
    run("build")
    board = board_path(registry, "trial").read_bytes()
    inputs = dict(real_record("pca", TASKS[0], [0.9]).inputs) | {"labels_from": "1" * 64}
    write_records(registry, [real_record("pca", TASKS[0], [0.9], inputs=inputs, fingerprint=hashed(inputs))])
    done = neuco_here("leaderboard", "build", "trial")
    assert (done.code, board_path(registry, "trial").read_bytes()) == (4, board)
    assert "trial: not written, it would lose 1 method (pca): olinda_elevation_mean: stale, the label file" in done.err
    for command in ("build", "check"):
        done = neuco_here("leaderboard", command)
        assert "Score again with `neuco score --all --suite trial`, or name" in done.err
        assert ("--drop METHOD" in done.err, "commit" in done.err) == (True, False)
    assert neuco_here("leaderboard", "build", "--drop", "random").code == 4
    unknown = neuco_here("leaderboard", "build", "--drop", "randon,pca")
    assert (unknown.code, "no method 'randon'. Did you mean 'random'?" in unknown.err) == (3, True), unknown.err
    assert "pca, at rank 1 before, is no longer ranked" in run("build", "--drop", "random,pca").output
    run("check")


def test_a_checkout_keeps_boards_with_scores_of_your_own_apart(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git tracks is main's to write: neither a build nor a check minds what somebody has scored for themselves."""
    run("build")
    tracked, own = board_path(registry, "trial"), board_path(tmp_path / ".neuco", "trial")
    before = tracked.read_bytes()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr("neuco_core.env.PACKAGE", tmp_path / "neuco_core")
    monkeypatch.delenv("NEUCO_REGISTRY")
    assert f"trial: unchanged, {tracked}" in run("build").output
    write_records(tmp_path / ".neuco", [real_record("mosaiks", task, [0.7, 0.8] * 5) for task in TASKS])
    assert "mosaiks" in run("show", "trial").output
    assert "is what the records give, 3 methods ranked" in run("check").output
    assert f"trial: written, {own}" in run("build").output
    assert "is what the records give, 4 methods ranked" in run("check").output
    assert (tracked.read_bytes(), "4" in run("list").output) == (before, True)
    own.unlink()
    tracked.write_bytes(before.replace(b"A trial", b"A trail"))
    done = neuco_here("leaderboard", "check")
    assert (done.code, f"Run `NEUCO_REGISTRY={registry} neuco leaderboard build trial`" in done.err) == (4, True)


def test_a_task_comes_gets_a_new_version_and_goes_and_no_board_suffers(tmp_path: Path, digits_ink: str) -> None:
    """As on a branch that is left again, or with a package that is installed and uninstalled."""
    (tmp_path / "ink.csv").write_text(digits_ink)
    suites = tmp_path / "registry/suites"
    suites.mkdir(parents=True)
    for name, tasks in (("even", ("digits_even",)), ("inks", ("ink", "digits_even")), ("only", ("ink",))):
        lines = "".join(f"{task} = 1\n" for task in tasks)
        (suites / f"{name}.toml").write_text(f'id = "{name}"\nprotocol = "ridge+k=4"\n[tasks]\n{lines}')

    def run_there(*args: object) -> Said:
        return neuco(*args, cwd=tmp_path, path=tmp_path, env={"NEUCO_REGISTRY": str(tmp_path / "registry")})

    about = ("--title=Ink", "--description=Ink", "--citation=arXiv:2510.17914", "--license=CC0-1.0", "--unit=1")
    made = run_there("new", "task", "ink", "--labels", tmp_path / "ink.csv", "--into", tmp_path / "neuco_tasks", *about)
    assert made.code == 0, made.err
    assert run_there("score", "--method", "averaging,random", "--suite", "inks").code == 0
    assert run_there("leaderboard", "build").code == 0
    boards = {path: path.read_bytes() for path in (tmp_path / "registry/leaderboards").iterdir()}

    plugin = tmp_path / "neuco_tasks/ink/__init__.py"
    first = plugin.read_text()
    plugin.write_text(first.replace('id="ink",', 'id="ink",\n        version=2,'))
    done = run_there("leaderboard", "build", "inks", "only")
    assert (done.code, {path: path.read_bytes() for path in boards}) == (4, boards)
    assert done.err.count("is not the version that the suite compares") == 1, "of two suites"
    assert done.err.count("it would lose 2 methods (averaging, random): ") == 2
    lines = [line.strip() for line in done.err.splitlines() if line.startswith("    ")]
    assert lines[:3] == [
        "first = Task(id='ink', version=1, …)  # as it was",
        "yield first",
        "yield replace(first, version=2, …)  # what changed",
    ]
    both = first.replace("yield Task(", "first = Task(") + "    yield first\n    yield replace(first, version=2)\n"
    plugin.write_text(both.replace("\nfrom neuco_core", "\nfrom dataclasses import replace\nfrom neuco_core", 1))
    assert run_there("leaderboard", "build", "inks", "only").out.count("unchanged") == 2

    shutil.rmtree(plugin.parent)
    done = run_there("leaderboard", "show", "even", "--json")
    assert (done.code, [row["rank"] for row in done.json["rows"]]) == (0, [1, 2])
    assert "2 records left out, not registered here: task 'ink' (of plugin ink)" in done.err
    assert run_there("leaderboard", "build", "even").code == 0
    assert "ink.csv would have rank" in run_there("leaderboard", "show", "even", "--with", "ink.csv").out
    for suite in ("inks", "only"):
        assert run_there("leaderboard", "build", suite).code == 4
    assert {path: path.read_bytes() for path in boards} == boards


def test_show_in_every_format(registry: Path) -> None:
    table = run("show", "trial").output
    assert table.splitlines()[0] == "A trial (trial)"
    assert table.splitlines()[3].split()[:3] == ["1", "(1–1)", "pca"]
    rows = list(csv.reader(io.StringIO(run("show", "trial", "--format", "csv", "--values", "rank").output)))
    assert rows[0][:6] == ["method", "baseline", "rank", "rank_low", "rank_high", "best"]
    assert rows[0][-2:] == list(TASKS)
    assert [row[:3] for row in rows[1:3]] == [["pca", "false", "1"], ["averaging", "true", "2"]]
    assert [row[-1] for row in rows[1:]] == ["1", "2", "3"]
    text = run("show", "trial", "--format", "csv").output
    assert "–" not in text, "for machines: plain numbers, nothing where nothing is known"
    board = json.loads(run("show", "trial", "--format", "json").output)
    for line, row in zip(csv.DictReader(io.StringIO(text)), board["rows"], strict=True):
        assert [float(line["rank_low"]), float(line["rank_high"])] == row["intervals"]["rank"]
        assert [float(line["mean_q_low"]), float(line["mean_q_high"])] == row["intervals"]["mean_q"]
        assert (float(line["best"]), line["baseline"]) == (row["values"]["best"], str(row["baseline"]).lower())
        assert float(line[TASKS[1]]) == row["cells"][TASKS[1]]["values"]["score"]
    markdown = run("show", "trial", "--format", "md", "--values", "q").output
    assert markdown.startswith("| Rank | Method |")
    assert "averaging (baseline)" in markdown
    latex = run("show", "trial", "--format", "latex").output
    assert r"olinda\_elevation\_mean" in latex
    assert latex.count(r"\\") == 4
    assert board["suite"]["id"] == "trial"
    assert json.loads(run("show", "trial", "--json").output) == board


def test_columns_are_chosen_the_best_is_bold_and_a_table_goes_to_a_file(registry: Path, tmp_path: Path) -> None:
    wanted = ("show", "trial", "--columns", "mean_q,dim,olinda_*_mean")
    run(*wanted, "--out", tmp_path / "board.tex")
    rows = (tmp_path / "board.tex").read_text(encoding="utf-8").split(r"\midrule")[1].splitlines()[1:4]
    cells = [[cell.strip() for cell in row.removesuffix(r" \\").split("&")] for row in rows]
    assert [row[1] for row in cells] == ["pca (overlap)", "averaging (baseline)", "random (baseline)"]
    bold = [[cell.startswith(r"\textbf{") for cell in row] for row in cells]
    assert bold == [[False, False, True, True, True], *[[False, False, False, True, False]] * 2], "all have one size"
    assert run(*wanted, "--format", "latex").output == (tmp_path / "board.tex").read_text(encoding="utf-8")
    for form, name in (("csv", "board.csv"), ("md", "board.md")):
        run(*wanted, "--out", tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == run(*wanted, "--format", form).output
    header = (tmp_path / "board.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == "method,baseline,rank,rank_low,rank_high,mean_q,mean_q_low,mean_q_high,dim,reason," + TASKS[0]
    run("show", "trial", "--out", tmp_path / "board.json")
    assert (tmp_path / "board.json").read_text(encoding="utf-8") == run("show", "trial", "--json").output
    with pytest.raises(UnknownIdError, match=r"no column or task 'mean_qq'\. Did you mean 'mean_q'"):
        run("show", "trial", "--columns", "mean_qq")
    for more, words in (
        (("--json",), "every column"),
        (("--out", "board.pdf"), "ends in .tex or .md or .csv or .json"),
    ):
        with pytest.raises(UsageError, match=words):
            run("show", "trial", "--columns", "mean_q", *more)


def test_show_under_another_rule_says_so(registry: Path) -> None:
    assert "equal weights" in run("show", "trial", "--weights", "equal").output
    assert "ghost task of spread 5" in run("show", "trial", "--weights", "equal", "--ghost", "5").output
    text = run("show", "trial", "--only", "p*", "--only", "random", "--ghost", "3").output
    assert "only the methods p*, random" in text
    assert "ghost task of spread 3" in text
    assert "averaging" not in text
    with pytest.raises(UnknownIdError):
        run("show", "trial", "--only", "nobody")
    with pytest.raises(UsageError, match="no spread to measure"):
        run("show", "trial", "--weights", "equal", "--spread", "robust")


def test_published_boards(committed_registry: Path) -> None:
    text = run("show", "neuco-paper-table-4").output
    assert "18 of the rows of the paper's table" in text
    assert "the ranking takes Q = 100 R²" in text
    assert "clouds 0.248" in text
    assert "clouds 0.136" in run("show", "neuco-paper-table-4", "--weights", "no-baselines").output
    assert "14.874" in run("show", "earthvision-2025-challenge").output
    assert "neuco-paper-table-4" in run("list").output
    with pytest.raises(UsageError):
        run("show", "neuco-paper-table-4", "--only", "x")
    with pytest.raises(UsageError, match="board kind 'standings' has no option 'ghost'"):
        run("show", "earthvision-2025-challenge", "--ghost", "3")
    with pytest.raises(UnknownIdError):
        run("show", "no-such-board")


def test_plots(registry: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for kind in ("differences", "profiles", "scatter"):
        for name in ("one", "two"):
            run("plot", "trial", "--kind", kind, "--out", tmp_path / f"{name}.svg")
        one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
        assert one == two
        drawn = ElementTree.fromstring(one.decode())
        assert len([part for part in drawn.iter() if part.get("data-method")]) == 3
    with pytest.raises(UsageError, match="cannot be written"):
        run("plot", "trial", "--out", tmp_path / "file/x.svg")
    with pytest.raises(UsageError, match="not a figure format"):
        run("plot", "trial", "--out", tmp_path / "figure.exe")


def test_site(registry: Path, tmp_path: Path) -> None:
    run("build")
    written = run("site", "--out", tmp_path / "site").output
    assert f"{len(list((tmp_path / 'site').rglob('*.html')))} pages" in written
    page = (tmp_path / "site/boards/trial/method/pca.html").read_text(encoding="utf-8")
    assert '<h2 id="card-title">Card</h2>' in page
    task = (tmp_path / f"site/boards/trial/task/{TASKS[0]}.html").read_text(encoding="utf-8")
    assert "1849 labels (m)" in task


def test_the_documentation_names_commands_and_options_that_exist(root: Path) -> None:
    from neuco_core.cli.leaderboard import leaderboard
    from neuco_core.plugins.catalog import load_board

    pages = ("howto/leaderboard.md", "why/ranking.md")
    text = "".join((root / "docs" / page).read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"neuco leaderboard (\w+)", text))
    assert named == set(leaderboard.commands)
    options = {name for command in leaderboard.commands.values() for p in command.params for name in p.opts}
    options |= {f"--{name}" for name in load_board("neuco").options}
    boards = "".join(
        line for line in text.splitlines(keepends=True) if not re.search("neuco embed|neuco show|benchmarks/", line)
    )
    assert set(re.findall(r"--[a-z]+", boards)) - {"---"} <= options


def test_the_documentation_names_the_columns_of_the_csv(root: Path) -> None:
    from tests.boards.helpers import board_of, cells_of, simulate

    header = grid(board_of(cells_of(simulate(np.random.default_rng(1), 3, 1)[1]))).plain[0]
    text = (root / "docs/ref/formats.md").read_text(encoding="utf-8").split("## Boards as CSV")[1]
    rows = [line.partition(":")[0] for line in text.splitlines() if line.startswith("- `")]
    assert tuple(re.findall(r"`(\w+)`", " ".join(rows))) == header[:-1]


def test_a_record_that_could_not_be_compared_here_ranks_and_is_told(
    registry: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not stale, and it is not said to be as it was either."""
    before = run("show", "trial").output
    assert caplog.messages == []
    embeddings_key = fingerprint.embeddings_key

    def needs_weights(method: Method, *others: Any) -> str:
        return embeddings_key(replace(method, requires=["weights"]) if method.id == "pca" else method, *others)

    monkeypatch.setattr(fingerprint, "embeddings_key", needs_weights)
    assert run("show", "trial").output == before
    assert caplog.messages == []
    assert run("show", "trial", "--details").output.splitlines()[-1] == (
        "2 records could not be compared here, their scores count as they are: "
        "method 'pca' needs weights, which is not installed"
    )


def test_a_file_cannot_be_recorded_beside_a_method_with_nearly_its_name(registry: Path, tmp_path: Path) -> None:
    record = make_record("band-statistics", TASKS[0], (0.9, 0.9), registered=False, dataset="olinda")
    assert stale_records([record]) == {record.key: "made from a file, but 'band_statistics' is a registered method now"}
    (tmp_path / "x.csv").write_text("id,0\n" + "".join(f"{i},{i}\n" for i in range(1797)))
    done = neuco_here(
        "score", "--embeddings", tmp_path / "x.csv", "--save", "--name", "band-statistics", "--task", "digits_class"
    )
    assert (done.code, done.out) == (2, "")
    assert "there is a method 'band_statistics' already" in done.err
