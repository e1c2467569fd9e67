"""A submission's faults: each named with its place, its value and its cure, all of them at once.

Also those of somebody who means no good: each is answered soon, and nobody else is harmed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from neuco_core.errors import DataError
from neuco_extensions.geobench.command import geobench
from neuco_extensions.geobench.facts import COLUMNS, INFO, KEYS, TABLE, TEXT
from neuco_extensions.geobench.folder import Fault
from neuco_extensions.geobench.submission import from_folder, list_submissions, to_folder
from neuco_extensions.geobench.validate import NEW, TUNED, validate
from tests.geobench.parts import Info, Rows, good_info, good_rows, renamed, run, spoiled, write

HEAD = ",".join(COLUMNS)
Spoil = Callable[[Rows, Info], object]


def cell(column: str, value: str, line: int = 2) -> Spoil:
    return lambda rows, info: rows[line - 2].__setitem__(column, value)


def everywhere(column: str, value: str, **only: str) -> Spoil:
    """In all rows, or in those that have these values."""
    return lambda rows, info: [row.update({column: value}) for row in rows if only.items() <= row.items()]


def key(name: str, value: object) -> Spoil:
    return lambda rows, info: info.__setitem__(name, value)


def entry(backbone: str, title: str) -> dict[str, object]:
    return {"model_display_name": title, "model_size": "1M", "unique_backbone_key": backbone}


# (what is spoiled, rule, column, whether the leaderboard itself refuses it, words of the cure)
SPOILED: dict[str, tuple[Spoil, str, str, bool, str]] = {
    "score is text": (cell("test metric", "good"), "types", "test metric", True, "Write a number"),
    "percent sign": (everywhere("data_percentages", "100%"), "types", "data_percentages", True, "Write 100"),
    "decimal comma": (cell("lr", "0,001"), "types", "lr", True, "Write 0.001"),
    "half a batch": (everywhere("batch_size", "2.5"), "types", "batch_size", False, "Write a whole number"),
    "backbones are numbers": (everywhere("decoder", "7"), "types", "decoder", True, "Write names"),
    "no decoder at all": (everywhere("decoder", ""), "empty", "decoder", True, "Fill it in"),
    "one empty decoder": (cell("decoder", ""), "empty", "decoder", False, "Fill it in"),
    "NaN as a learning rate": (cell("lr", "nan"), "empty", "lr", False, "Fill it in"),
    "infinite score": (cell("test metric", "inf"), "range", "test metric", False, "finite"),
    "negative learning rate": (everywhere("lr", "-0.1"), "range", "lr", False, "above 0"),
    "no learning": (everywhere("lr", "0"), "range", "lr", False, "above 0"),
    "negative decay": (everywhere("weight_decay", "-1"), "range", "weight_decay", False, "at least 0"),
    "no trials": (everywhere("n_trials", "0"), "range", "n_trials", False, "at least 1"),
    "too much data": (everywhere("data_percentages", "120"), "range", "data_percentages", False, "at most 100"),
    "negative seed": (cell("Seed", "-4"), "range", "Seed", False, "at least 0"),
    "negative patience": (cell("early_stop_patience", "-1"), "range", "early_stop_patience", False, "at least 0"),
    "percent as a score": (cell("test metric", "61.2"), "score", "test metric", False, "0.612 for 61.2 %"),
    "negative score": (cell("test metric", "-0.2"), "score", "test metric", False, "between 0 and 1"),
    "unknown metric": (everywhere("Metric", "accuracy_of_all"), "unknown", "Metric", False, "Known are"),
    "metric of another dataset": (
        everywhere("Metric", "RMSE", dataset="so2sat"), "metric", "Metric", False, "Score so2sat by Overall_Accuracy",
    ),
    "half tuned": (cell(TUNED, "half"), "tuning", TUNED, True, "frozen or full_ft"),
    "no tuning": (cell(TUNED, ""), "tuning", TUNED, True, "frozen or full_ft"),
    "frozen and full": (everywhere(TUNED, "full_ft", backbone="resnet50"), "mixed-tuning", TUNED, False, "two folders"),
    "four seeds": (lambda rows, info: rows.pop(), "seeds", "Seed", True, "more seeds"),
    "six seeds": (lambda rows, info: rows.append({**rows[-1], "Seed": "9"}), "seeds", "Seed", True, "Keep 5"),
    "a seed twice": (cell("Seed", "1"), "duplicate", "Seed", False, "another seed"),
    "two learning rates": (cell("lr", "0.5"), "mixed-settings", "lr", False, "Repeat one setting"),
    "two decoders": (cell("decoder", "UPerNet"), "mixed-settings", "decoder", False, "Repeat one setting"),
    "a backbone without a capability": (
        lambda rows, info: rows.__setitem__(slice(None), rows[5:]), "coverage", "dataset", False, "add benv2",
    ),
    "no whole capability": (
        lambda rows, info: rows.__setitem__(slice(None), [row for row in rows if row["dataset"] != "benv2"]),
        "coverage", "dataset", True, "For Classification add benv2",
    ),
    "trials as a number": (key("Number of HPO trials", 16), "key-types", "Number of HPO trials", True, '"16"'),
    "trials in words": (key("Number of HPO trials", "many"), "trials", "Number of HPO trials", False, "digits"),
    "model info is no list": (key(NEW, {}), "key-types", NEW, True, "a list"),
    "model without a key": (key(NEW, [{}]), "model-info", NEW, True, "unique_backbone_key"),
    "model is no object": (key(NEW, ["x"]), "model-info", NEW, True, "{ … }"),
    "size is a number": (key(NEW, [entry("", "") | {"model_size": 3}]), "model-info", NEW, False, "quotes"),
    "unknown backbone": (everywhere("backbone", "mine", backbone="resnet50"), "new-model", NEW, False, "_key 'mine'"),
    "no key for the code": (
        lambda rows, info: info.__setitem__("Code Repository Link", info.pop("Code Repository Link ")),
        "keys", "Code Repository Link ", True, "with a space at its end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_each_fails_for_its_own_reason(tmp_path: Path, name: str) -> None:
    spoil, rule, column, official, cure = SPOILED[name]
    folder = spoiled(tmp_path, spoil)
    faults = validate(folder)
    assert {(fault.rule, fault.column) for fault in faults} == {(rule, column)}
    assert cure in " ".join(fault.cure for fault in faults)
    assert any(fault.official >= official for fault in faults)
    assert bool(validate(folder, official=True)) == official


def test_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "a")
    (folder / "notes.txt").write_text("x")
    (fault,) = validate(folder)
    assert (fault.rule, fault.file, fault.official, fault.cure) == ("files", "notes.txt", True, "Remove notes.txt")
    for k in range(499):
        (folder / f"{k}.txt").touch()
    faults = validate(folder)
    assert (len(faults), "500 further files" in str(faults[-1])) == (21, True)
    for path in folder.glob("*.txt"):
        path.unlink()
    (folder / INFO).rename(folder / INFO.upper())
    rules = [(fault.file, fault.cure) for fault in validate(folder)]
    assert (INFO, f"Rename {INFO.upper()} to {INFO}") in rules
    with pytest.raises(DataError, match="no such folder"):
        validate(tmp_path / "nowhere")


def test_a_row_of_another_length_and_columns_that_are_there_twice(tmp_path: Path) -> None:
    folder = write(tmp_path)
    lines = (folder / TABLE).read_text().splitlines()
    (folder / TABLE).write_text("\n".join([*lines[:-1], lines[-1] + ",1"]) + "\n")
    assert ("fields", (len(lines),), True) in [(f.rule, f.rows, f.official) for f in validate(folder)]
    (folder / TABLE).write_text("\n".join(line + "," + line.rsplit(",", 1)[1] for line in lines) + "\n")
    assert [(f.rule, f.column) for f in validate(folder)] == [("columns", "test metric")]
    text = (folder / INFO).read_text()
    (folder / INFO).write_text(text[:-1] + ', "License": "MIT"}')
    assert ("keys", "License") in [(f.rule, f.column) for f in validate(folder)]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named_and_a_misspelt_one_is_seen(tmp_path: Path, column: str) -> None:
    others = tuple(name for name in COLUMNS if name != column)
    faults = validate(write(tmp_path / "a", good_rows(), good_info(), others), official=True)
    assert ("columns", column) in [(fault.rule, fault.column) for fault in faults]
    wrong = column.upper() if column.upper() != column else column.lower()
    rows = [{**row, wrong: row[column]} for row in good_rows()]
    faults = validate(write(tmp_path / "b", rows, good_info(), (*others, wrong)), official=True)
    assert f"Rename {wrong!r} to {column!r}" in [fault.cure for fault in faults]


def test_each_missing_key_is_named(tmp_path: Path) -> None:
    faults = validate(write(tmp_path, good_rows(), {}), official=True)
    assert [(fault.rule, fault.column) for fault in faults] == [("keys", name) for name in KEYS]


def test_an_error_instead_of_a_score(tmp_path: Path) -> None:
    rows = good_rows(("biomassters", "dynamic_earthnet", "kuro_siwo", "pastis"))
    rows[0]["test metric"] = "2.0"
    (fault,) = validate(write(tmp_path, rows, good_info()))
    assert fault.cure == "Write 1 - rmse × 0.2537951171398163, which is 0.49241 if this is the rmse"


NUMBERS = [column for column, kind in COLUMNS.items() if kind != TEXT]
NOT_NUMBERS = st.text(st.characters(codec="utf-8", categories=("Lu", "Ll", "Lo", "Po")), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    column=st.sampled_from(NUMBERS),
    line=st.integers(2, 41),
    value=NOT_NUMBERS.filter(lambda text: text.lower() not in {"inf", "infinity", "nan", "na", "null", "none", "n/a"}),
)
def test_whatever_is_no_number_is_found_where_it_is(
    tmp_path_factory: pytest.TempPathFactory, column: str, line: int, value: str
) -> None:
    folder = spoiled(tmp_path_factory.mktemp("any"), cell(column, value, line))
    faults = [fault for fault in validate(folder, official=True) if fault.rule == "types"]
    assert [(fault.rows, fault.column, fault.value) for fault in faults] == [((line,), column, value.strip())]


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([TABLE, INFO]))
def test_any_bytes_are_answered_with_faults(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    folder = write(tmp_path_factory.mktemp("bytes"))
    (folder / name).write_bytes(data)
    faults = validate(folder)
    assert faults
    assert all(isinstance(fault, Fault) and fault.cure and str(fault) for fault in faults)


def test_equal_faults_are_told_once(tmp_path: Path) -> None:
    (fault,) = validate(spoiled(tmp_path, everywhere("data_percentages", "100%")))
    assert len(fault.rows) == 40
    assert str(fault) == (f"{TABLE}, column 'data_percentages', lines 2–41: not an integer (found '100%'). Write 100")


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
        (renamed("mine", "TERRAMIND-v1-base"), "the name of the backbone 'terramind_v1_base'"),
        (key(NEW, [entry("resnet50", "Ours"), entry("terramind_v1_base", "OURS")]), "the name of the backbone 'resnet"),
        (key("Paper Link", "javascript:alert(1)"), "an address of the kind javascript:"),
        (key("Code Repository Link ", " JavaScript:alert(1)"), "an address of the kind javascript:"),
        (key("License", "MIT\n\u202eTIM"), "characters that cannot be seen"),
        (renamed("mine", "x" * 201), "longer than 200"),
        (lambda rows, info: [row.update(decoder="=cmd|' /C calc'!A0") for row in rows], "begins like a formula"),
        (lambda rows, info: [row.update(experiment_name="a\x1b[2Jb") for row in rows], "cannot be seen"),
        (lambda rows, info: info.update(License="x" * 30_000), "longer than 20000"),
        (lambda rows, info: rows[1].update(Seed="0.0"), "has a seed twice"),
        (lambda rows, info: rows.extend(rows[0] | {"backbone": f"n{k}"} for k in range(99)), "101 backbones in one"),
        (lambda rows, info: info.update({"New model info": [{"unique_backbone_key": ["a"]}]}), "not a text"),
    ],
)
def test_names_that_mislead(tmp_path: Path, spoil: Callable[[Rows, Info], object], words: str) -> None:
    assert words in "\n".join(map(str, validate(spoiled(tmp_path, spoil))))


@pytest.mark.parametrize("look_alike", ["\u041cetric", "Metr\u0456c", "Metric\u200b"])
def test_a_column_that_looks_the_same(tmp_path: Path, look_alike: str) -> None:
    rows = [{**row, look_alike: row["Metric"]} for row in good_rows()]
    columns = tuple(look_alike if name == "Metric" else name for name in COLUMNS)
    (fault,) = validate(write(tmp_path, rows, good_info(), columns), official=True)
    assert fault.cure == f"Rename {look_alike!a} to 'Metric'"  # told by its number


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (TABLE, b"\xff\xfe\x00", "not UTF-8"),
        (TABLE, "", "the table is empty"),
        (TABLE, 'a,b\n"x,1\n', "not CSV"),
        (INFO, "{", "not JSON"),
        (INFO, "[]", "not a JSON object"),
        (INFO, b"\xff", "not UTF-8"),
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
def test_files_that_cannot_be_read_large_and_deep_ones(
    tmp_path: Path, name: str, text: str | bytes, words: str
) -> None:
    """Nothing here takes more than a moment; each would, with a list that is searched for each of its entries."""
    folder = write(tmp_path)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert words in "\n".join(map(str, validate(folder)))


def test_a_file_of_any_size(tmp_path: Path) -> None:
    folder = write(tmp_path)
    os.truncate(folder / TABLE, 10**10)  # a hole, no bytes on the disk
    assert "larger than 50000000 bytes" in "\n".join(map(str, validate(folder)))


def test_what_spreadsheets_write_is_read(tmp_path: Path) -> None:
    """A mark of the byte order, lines that end with CR LF, and fields in quotes."""
    folder = write(tmp_path)
    lines = (folder / TABLE).read_text().splitlines()
    quoted = ["\ufeff" + lines[0], *(",".join(f'"{cell}"' for cell in line.split(",")) for line in lines[1:])]
    (folder / TABLE).write_bytes("\r\n".join(quoted).encode())
    (folder / INFO).write_bytes("\ufeff".encode() + (folder / INFO).read_bytes())
    assert validate(folder) == []


@pytest.mark.parametrize("name", [TABLE, INFO])
def test_what_is_not_a_file(tmp_path: Path, name: str) -> None:
    """A link may lead to what is nobody's business; of a folder or a pipe nothing would be read, and nothing found."""
    folder = write(tmp_path / "in")
    real = (folder / name).rename(tmp_path / name)
    for make in (lambda path: path.symlink_to(real), Path.mkdir, os.mkfifo):
        make(folder / name)
        assert [(fault.file, fault.what) for fault in validate(folder)] == [(name, "not a regular file")]
        with pytest.raises(DataError, match="not a regular file"):
            from_folder(folder, "mine")
        (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()


def test_the_command(tmp_path: Path) -> None:
    good = write(tmp_path / "good")
    (good / ".DS_Store").write_bytes(b"")  # overlooked there, too
    assert run("check", good).output == "no faults\n"
    bad = spoiled(tmp_path / "bad", cell("Seed", "1"))
    done = CliRunner().invoke(geobench, ["check", str(bad)])
    assert isinstance(done.exception, DataError)
    assert done.output == (
        f"duplicate: {TABLE}, column 'Seed', lines 2, 3: resnet50 on benv2 has a seed twice (found '1'). "
        "Keep one of the rows, and run another seed\n"
    )
    assert run("check", bad, "--official").exit_code == 0


def test_the_same_under_the_pandas_of_another_environment(root: Path, committed_registry: Path, tmp_path: Path) -> None:
    """The real numbers, written as folders, and a spoiled one. pandas has no say in it, whichever is installed."""
    python = shutil.which("python", path=str(root / ".venv-pandas2/bin"))
    if python is None:
        # Justified: pandas 2 needs an environment of its own; a weekly job makes it.
        pytest.skip("no .venv-pandas2: run `make test-pandas2`")
    folders = [to_folder(one, tmp_path / one.about.id) for one in list_submissions(committed_registry)]
    folders.append(spoiled(tmp_path / "bad", everywhere("data_percentages", "100%")))
    code = (
        "import sys, pandas; from pathlib import Path; from neuco_extensions.geobench.validate import validate;"
        "print(pandas.__version__.split('.')[0]); print([list(map(str, validate(Path(p)))) for p in sys.argv[1:]])"
    )
    outputs = [
        subprocess.run([program, "-c", code, *folders], cwd=root, capture_output=True, text=True, check=True).stdout
        for program in (sys.executable, python)
    ]
    assert [text[:2] for text in outputs] == ["3\n", "2\n"]
    assert outputs[0][2:] == outputs[1][2:]
    assert outputs[0][2:].startswith("[[], [], [")
