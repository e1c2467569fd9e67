"""Submissions of somebody who means no good: each is answered soon, with a fault, and nobody else is harmed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from neuco_core.boards.model import Board
from neuco_core.boards.report import grid, to_csv
from neuco_core.errors import DataError
from neuco_extensions.geobench.exchange import from_folder
from neuco_extensions.geobench.facts import COLUMNS, DATASETS, INFO, TABLE
from neuco_extensions.geobench.published import of_submissions, parameters
from neuco_extensions.geobench.submission import RUNS, list_submissions, read_submission, write_submission
from neuco_extensions.geobench.validate import validate
from tests.geobench.parts import Info, Rows, good_info, good_rows, spoiled, write

HEAD = ",".join(COLUMNS)


def renamed(name: str, display: str = "Mine") -> Callable[[Rows, Info], None]:
    """A backbone of this name, with an entry that tells what it is called."""

    def spoil(rows: Rows, info: Info) -> None:
        for row in rows:
            row["backbone"] = name if row["backbone"] == "resnet50" else row["backbone"]
        info["New model info"] = [{"model_display_name": display, "model_size": "1M", "unique_backbone_key": name}]

    return spoil


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (renamed("terramind_v1_l\u0430rge"), r"not a plain name (found 'terramind_v1_l\\u0430rge')"),  # Cyrillic
        (renamed("___"), "not a plain name"),
        (renamed("n" * 150), "not a plain name"),
        (renamed("../../../etc/x"), "not a plain name"),
        (renamed("TerraMind_V1_BASE"), "hard to tell from 'TerraMind_V1_BASE'"),
        (renamed("mine", "TerraMind-V1-Large"), "the name of the backbone 'terramind_v1_large'"),
        (renamed("mine", "safe\u202egnp.exe"), "characters that cannot be seen"),
        (renamed("mine", "=HYPERLINK(1)"), "begins like a formula"),
        (renamed("mine", "x" * 201), "longer than 200"),
        (lambda rows, info: [row.update(decoder="=cmd|' /C calc'!A0") for row in rows], "begins like a formula"),
        (lambda rows, info: [row.update(experiment_name="a\x1b[2Jb") for row in rows], "cannot be seen"),
        (lambda rows, info: info.update(License="x" * 30_000), "longer than 20000"),
        (lambda rows, info: rows[1].update(Seed="0.0"), "has a seed twice"),
        (lambda rows, info: info.update({"New model info": [{"unique_backbone_key": ["a"]}]}), "not a text"),
    ],
)
def test_names_that_mislead(tmp_path: Path, spoil: Callable[[Rows, Info], object], words: str) -> None:
    assert words in "\n".join(map(str, validate(spoiled(tmp_path, spoil))))


def test_too_many_backbones(tmp_path: Path) -> None:
    rows = [row | {"backbone": f"net{k}"} for k in range(101) for row in good_rows() if row["backbone"] == "resnet50"]
    assert "101 backbones in one submission" in "\n".join(map(str, validate(write(tmp_path, rows, good_info()))))


@pytest.mark.parametrize("look_alike", ["\u041cetric", "Metr\u0456c", "Metric\u200b"])
def test_a_column_that_looks_the_same(tmp_path: Path, look_alike: str) -> None:
    rows = [{**row, look_alike: row["Metric"]} for row in good_rows()]
    columns = tuple(look_alike if name == "Metric" else name for name in COLUMNS)
    (fault,) = validate(write(tmp_path, rows, good_info(), columns), official=True)
    assert fault.cure == f"Rename {look_alike!a} to 'Metric'"  # told by its number


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (TABLE, HEAD.replace(",", ";") + "\n1;2\n", "the fields are separated by semicolons"),
        (TABLE, HEAD.replace(",", "\t") + "\n", "the fields are separated by tabs"),
        (TABLE, ",".join(f"c{k}" for k in range(300_000)), "300000 columns; at most 200"),
        (TABLE, f"{HEAD}\n" + "x,\n" * 500_000, "more than 20000 rows"),
        (TABLE, f"{HEAD}\n" + f"{',' * (len(COLUMNS) - 1)}\n" * 1_000_000, "more than 20000 rows"),
        (TABLE, f"{HEAD}\n" + "x" * 200_000, "field larger than field limit"),
        (INFO, "[" * 100_000, "not JSON"),
        (INFO, '{"License": ' + "[" * 900 + "]" * 900 + "}", "not a text (found 'a list')"),
        (INFO, "{" + ",".join(f'"k{k}":1' for k in range(80_000)) + "}", "the key is missing"),
        (INFO, '{"a": ' + "9" * 5000 + "}", "not JSON"),
        (INFO, '{"License": "a", "License": "b"}', "the key is there twice"),
    ],
)
def test_large_and_deep_files(tmp_path: Path, name: str, text: str, words: str) -> None:
    """Nothing here takes more than a moment; each would, with a list that is searched for each of its entries."""
    folder = write(tmp_path, good_rows(), good_info())
    (folder / name).write_text(text, encoding="utf-8")
    assert words in "\n".join(map(str, validate(folder)))


def test_a_file_of_any_size(tmp_path: Path) -> None:
    folder = write(tmp_path, good_rows(), good_info())
    os.truncate(folder / TABLE, 10**10)  # a hole, no bytes on the disk
    assert "larger than 50000000 bytes" in "\n".join(map(str, validate(folder)))


def test_what_spreadsheets_write_is_read(tmp_path: Path) -> None:
    """A mark of the byte order, lines that end with CR LF, and fields in quotes."""
    folder = write(tmp_path, good_rows(), good_info())
    lines = (folder / TABLE).read_text().splitlines()
    quoted = ["\ufeff" + lines[0], *(",".join(f'"{cell}"' for cell in line.split(",")) for line in lines[1:])]
    (folder / TABLE).write_bytes("\r\n".join(quoted).encode())
    (folder / INFO).write_bytes("\ufeff".encode() + (folder / INFO).read_bytes())
    assert validate(folder) == []


@pytest.mark.parametrize("name", [TABLE, INFO])
def test_what_is_not_a_file(tmp_path: Path, name: str) -> None:
    """A link may lead to what is nobody's business; of a folder or a pipe nothing would be read, and nothing found."""
    folder = write(tmp_path / "in", good_rows(), good_info())
    real = (folder / name).rename(tmp_path / name)
    for make in (lambda path: path.symlink_to(real), Path.mkdir, os.mkfifo):
        make(folder / name)
        assert [(fault.file, fault.what) for fault in validate(folder)] == [(name, "not a regular file")]
        with pytest.raises(DataError, match="not a regular file"):
            from_folder(folder, "mine")
        (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()


def test_a_folder_of_many_files(tmp_path: Path) -> None:
    folder = write(tmp_path, good_rows(), good_info())
    for k in range(500):
        (folder / f"{k}.txt").touch()
    faults = validate(folder)
    assert len(faults) == 21
    assert "500 further files" in str(faults[-1])


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("0.61 ", "nan ", "non-finite"),
        ("0.61 ", "-inf ", "non-finite"),
        ("0 1 2 3 4,", f"{' '.join(map(str, range(200)))},", "too many runs|seeds and scores differ"),
    ],
)
def test_what_lies_in_the_registry_is_read_strictly(tmp_path: Path, before: str, after: str, words: str) -> None:
    own = from_folder(write(tmp_path / "in", good_rows(), good_info()), "mine")
    path = write_submission(tmp_path / "registry", own) / RUNS
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(DataError, match=words):
        read_submission(path.parent)


def ranked_with(root: Path, folder: Path, rows: Rows, info: Info) -> Board:
    mine = from_folder(write(folder, rows, info), "mine")
    published = of_submissions([*list_submissions(root / "registry"), mine])
    assert published is not None
    return published.board()


def test_runs_that_do_not_vary_take_nobodys_interval(root: Path, tmp_path: Path) -> None:
    rows = [row | {"test metric": "0.5"} for row in good_rows(tuple(DATASETS)) if row["backbone"] == "resnet50"]
    board = ranked_with(root, tmp_path, rows, good_info())
    unknown = {row.method for row in board.ranked if "rank" not in row.intervals}
    assert unknown == {"resnet50-mine"}
    assert "No interval, since the runs do not vary: resnet50-mine" in board.notes
    assert len(board.ranked) == 18
    assert board.groups


def test_rows_of_one_name_are_refused(root: Path, tmp_path: Path) -> None:
    """A backbone ``x-mine`` of the submission ``a``, and ``x`` of ``mine-a``."""
    spoil, rows, info = renamed("x-mine"), good_rows(), good_info()
    spoil(rows, info)
    first = from_folder(write(tmp_path / "a", rows, info), "a")
    spoil, rows, info = renamed("x"), good_rows(), good_info()
    spoil(rows, info)
    second = from_folder(write(tmp_path / "b", rows, info), "mine-a")
    with pytest.raises(DataError, match="two rows of one name"):
        of_submissions([first, second])


def test_facts_are_no_formulas_in_the_file_of_a_board(root: Path, tmp_path: Path) -> None:
    """What lies in the registry of somebody else may not have been checked here."""
    own = from_folder(write(tmp_path / "in", good_rows(), good_info()), "mine")
    path = write_submission(tmp_path / "registry", own) / RUNS
    path.write_text(path.read_text().replace(",UNet,", ",=1+2,"))
    published = of_submissions(list_submissions(tmp_path / "registry"))
    assert published is not None
    text = to_csv(grid(published.board({"by": "classification"})))
    assert ",'=1+2," in text
    assert ",=1+2," not in text


def test_sizes_without_end() -> None:
    assert parameters("9" * 400 + "M") is None
    assert parameters("1e999M") is None


def test_json_is_written_as_it_was_read(tmp_path: Path) -> None:
    words = {
        "Paper Link": "javascript:alert(1)",
        "License": '"><script>',
        "Comments on new models in submission": "é\u2028",
    }
    own = from_folder(write(tmp_path, good_rows(), good_info() | words), "mine")
    assert (own.about.paper, own.about.license) == ("javascript:alert(1)", '"><script>')
    assert json.loads((write_submission(tmp_path / "r", own) / "submission.json").read_text())["comments"] == "é\u2028"
