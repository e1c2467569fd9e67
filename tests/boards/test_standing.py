"""Where would I stand? Files among the methods of a suite, scored and ranked, and nothing recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neuco_core import Standing, evaluate, load_method, load_task, rank_on
from neuco_core.boards.store import stored_board
from neuco_core.cubes.cubes import CubeBatch
from neuco_core.errors import DataError, UnknownIdError, UsageError
from tests.command import neuco_here as neuco

TASKS = ("olinda_elevation_mean", "olinda_elevation_std", "olinda_sea_level")


def contents(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The embeddings of a registered method under another name, and a part of them with a gap."""
    folder = tmp_path_factory.mktemp("standing")
    known = load_method("band_statistics").embeddings("olinda")
    table = pd.DataFrame(known.values, columns=[str(i) for i in range(known.dim)])
    table.insert(0, "id", known.ids)
    table.to_parquet(folder / "mine.parquet")
    table["3"] = [None, *table["3"][1:]]
    table.loc[table.index[-8], "id"] = "misspelt"
    table.iloc[:-7].to_csv(folder / "pca.csv", index=False)
    return {"mine": folder / "mine.parquet", "part": folder / "pca.csv"}


@pytest.fixture(scope="module")
def standing(files: Mapping[str, Path], committed_registry: Path) -> Standing:
    before = contents(committed_registry)
    ranked = rank_on("olinda", files["mine"], files["part"], registry=committed_registry)
    assert contents(committed_registry) == before, "nothing is written to the registry"
    return ranked


def test_the_same_embeddings_have_the_same_place(standing: Standing) -> None:
    mine, _ = standing.places
    theirs = next(row for row in standing.board.rows if row.method == "band_statistics")
    assert (mine.row.rank, mine.row.same_as) == (None, "band_statistics")
    for task in TASKS:
        assert mine.row.cells[task].values == theirs.cells[task].values
    interval = theirs.intervals["rank"]
    assert mine.missing == {}
    assert mine.sentence.startswith(
        "mine.parquet has the same embeddings as band_statistics. "
        f"band_statistics has rank {theirs.rank} of {len(standing.board.ranked)}; "
        f"ranks {interval.low}–{interval.high} are plausible at 95%"
    )


def test_those_named_as_indistinguishable_are_those_whose_scores_do_not_differ() -> None:
    """Means of bands rank beside efficientnet, which surely scores higher, and far from autoencoder, their equal."""

    def means(batch: CubeBatch) -> np.ndarray:
        return np.asarray(batch.values.mean(axis=(1, 3, 4)))

    standing = evaluate(means, "olinda", name="means").rank_on("olinda")
    assert str(standing).endswith("; statistically indistinguishable from autoencoder.")
    rows = {row.method: row for row in standing.board.rows}
    higher = [rows["efficientnet"].cells[t].values["score"] > rows["means"].cells[t].values["score"] for t in TASKS]
    assert (all(higher), rows["means"].rank, rows["efficientnet"].rank) == (True, 3, 4)


def test_what_a_file_lacks_is_named(standing: Standing) -> None:
    _, part = standing.places
    assert part.row.method == "pca-file", "a registered name is not taken"
    ids = load_method("band_statistics").embeddings("olinda").ids[-8:]
    assert {dataset: set(names) for dataset, names in part.missing.items()} == {"olinda": set(ids)}
    notes = "\n".join(standing.notes)
    told = "warning: pca.csv: in olinda, no embedding for 8 of 1849 labelled samples ("
    assert (notes.count(told), notes.count(f"{ids[0]}, {ids[1]}")) == (1, 1)
    assert notes.count("not comparable with methods that have all; no label for 1 id (misspelt).") == 1
    assert "Not comparable: pca.csv lacks 8 labelled samples that the other methods have, so" in notes
    assert (part.row.rank, "pca.csv would have" in notes) == (None, False)
    assert "pca.csv: 1 value missing or not a number, counted as 0." in notes


def test_a_file_that_lacks_samples_has_no_rank_on_a_published_board_either(
    files: Mapping[str, Path], tmp_path: Path
) -> None:
    rows = [
        {"method": name, "title": name, "name": name, "baseline": False, "scores": [score] * 3}
        for name, score in (("theirs", 0.3), ("others", 0.99))
    ]
    about = {"title": "A paper", "description": "Its table", "citation": "A paper", "source": "https://example.org"}
    board = {"schema": 2, "id": "paper", "kind": "neuco", "rows": rows, "tasks": TASKS, "protocol": "ridge+k=2"}
    (tmp_path / "published").mkdir()
    (tmp_path / "published/paper.json").write_text(json.dumps({**board, **about, "metric": "r2"}))
    standing = rank_on("paper", files["mine"], files["part"], registry=tmp_path)
    mine, part = standing.places
    assert (mine.row.rank, part.row.rank, len(standing.board.ranked)) == (2, None, 3)
    assert "would have rank 2 of 3 among results as published" in mine.sentence
    assert part.sentence.startswith("Not comparable: pca.csv lacks 8 labelled samples")
    assert {cell.status for cell in part.row.cells.values()} == {"stale"}


def test_rows_are_marked_and_the_pool_is_that_of_the_board(standing: Standing, committed_registry: Path) -> None:
    titles = {row.method: row.title for row in standing.board.rows}
    assert titles["mine"] == "mine.parquet (yours)"
    assert not any("yours" in title for method, title in titles.items() if method not in ("mine", "pca-file"))
    others = stored_board(committed_registry, "olinda").ranks
    assert {row.method for row in standing.board.ranked} == {*others}, "a file that lacks samples has no rank"


def test_a_board_whose_splits_cut_groups_names_the_one_with_whole_groups(standing: Standing) -> None:
    (note,) = (note for note in standing.board.notes if "cut through the groups" in note)
    assert note.endswith("keeps groups whole; see the board olinda-blocks.")


def test_the_command_prints_the_place_last(files: Mapping[str, Path]) -> None:
    ran = neuco("leaderboard", "show", "olinda", "--with", files["mine"], "--only", "mosaiks,random")
    assert ran.code == 0, ran.err
    last = ran.out.splitlines()[-1]
    assert last.startswith("mine.parquet would have rank 2 of 3")
    assert "only the methods mosaiks, random, mine" in ran.out
    assert ran.err.count("ok mine on olinda_") == 3
    as_json = neuco("leaderboard", "show", "olinda", "--with", files["mine"], "--only", "random", "--json").json
    assert as_json["yours"] == [
        {"file": "mine.parquet", "method": "mine", "missing": {}, "sentence": as_json["yours"][0]["sentence"]}
    ]
    assert [row["title"] for row in as_json["rows"]] == ["mine.parquet (yours)", ""]


def test_one_file_may_hold_several_datasets(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    ids = [*load_task("olinda_sea_level").labels().ids, *load_task("digits_class").labels().ids]
    table = pd.DataFrame(random.normal(size=(len(ids), 2)), columns=["0", "1"])
    table.insert(0, "id", ids)
    table.to_csv(tmp_path / "two.csv", index=False)
    standing = rank_on("embedded", tmp_path / "two.csv")
    (file_rank,) = standing.places
    assert {task for task, cell in file_rank.row.cells.items() if cell.status == "ok"} == {*TASKS, "digits_class"}
    assert file_rank.row.rank is None
    assert file_rank.sentence.startswith("two.csv is not ranked: it has no score on 8 of 12 tasks (mini_")
    assert set(file_rank.missing) == {"mini"}
    assert all(note.endswith("more.") for note in standing.notes if "lacks" in note)


def test_wrong_files_and_boards_are_refused(tmp_path: Path, files: Mapping[str, Path]) -> None:
    (tmp_path / "strange.csv").write_text("id,0\na,1\nb,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(UsageError, match="no id of the file has a label in suite 'olinda'; expected ids of olinda"):
        rank_on("olinda", tmp_path / "strange.csv")
    for name in ("empty.csv", "text.parquet", "absent.csv"):
        with pytest.raises(DataError, match=name):
            rank_on("olinda", tmp_path / name)
    with pytest.raises(UnknownIdError, match="Did you mean 'olinda'"):
        rank_on("olinde", files["mine"])
    with pytest.raises(UnknownIdError, match="no method 'mosaik'"):
        rank_on("olinda", files["mine"], only=["mosaik"], on_record=lambda record: pytest.fail("scored"))
    with pytest.raises(UsageError, match="no file to rank"):
        rank_on("olinda")
    ran = neuco("leaderboard", "show", "earthvision-2025-challenge", "--with", files["mine"])
    assert (ran.code, "this published board does not say how a file would be scored" in ran.err) == (2, True)
    ran = neuco("leaderboard", "show", "neuco-real", "--with", files["mine"])
    assert (ran.code, ran.err.count("no labels of neuco-real are on this machine")) == (4, 1)
    assert "`neuco data pin --suite neuco-real`" in ran.err
    ran = neuco("score", "--embeddings", files["mine"], "--suite", "neuco-real")
    assert (ran.code, "Run `neuco data pin --suite neuco-real`" in ran.err) == (4, True)
    assert "data pin biomass" not in ran.text, "one command, and the right one"
    ran = neuco("leaderboard", "show", "neuco-paper-table-4", "--with", files["mine"])
    assert (ran.code, "no labels of neuco-paper-table-4 are on this machine" in ran.err) == (4, True)
    assert ("Run `neuco data pin --suite neuco-real`" in ran.err, "pin biomass" in ran.err) == (True, False)


@pytest.mark.parametrize(
    "command",
    [
        ("score", "--suite", "olinda", "--k", 2, "--embeddings"),
        ("leaderboard", "show", "olinda", "--only", "random", "--with"),
    ],
)
def test_a_file_with_labels_is_refused_unless_they_are_meant(command: tuple[object, ...], tmp_path: Path) -> None:
    """It would rank first, with a warning that scrolls away. What only resembles a label is warned of."""
    labels = load_task("olinda_elevation_mean").labels()
    random = np.random.default_rng(0)
    truth = labels.values.reshape(len(labels), -1)[:, 0]
    noise = random.standard_normal(len(truth)) * truth.std()
    for name, column in (("same", 3 - 2 * truth), ("near", truth + 0.02 * noise), ("few", truth)):
        table = pd.DataFrame({"id": labels.ids, "a": noise, "height": column})
        table[: 19 if name == "few" else None].to_csv(tmp_path / f"{name}.csv", index=False)
    same, near, few = tmp_path / "same.csv", tmp_path / "near.csv", tmp_path / "few.csv"
    refused = neuco(*command, same)
    assert (refused.code, "column 'height' is the label of olinda_elevation_mean" in refused.err) == (4, True)
    assert "Leave height out of the file; if it is meant, add --allow-labels" in refused.err
    meant = neuco(*command, same, "--allow-labels")
    assert (meant.code, "column 'height' is the label of" in meant.out + meant.err) == (0, True), meant.err
    warned = neuco(*command, near)
    assert (warned.code, "(|r| = 0.9998)" in warned.out + warned.err) == (0, True), warned.err
    assert "is the label of" not in neuco(*command, few).err
