"""The position baseline: the file is the waves that its card names, and knows the place better than the land."""

from __future__ import annotations

import numpy as np

from neuco_core import load_dataset, load_method, load_task, score


def test_the_file_holds_waves_of_row_and_column() -> None:
    rows, columns = np.divmod(np.arange(1849), 43)
    down, across = (np.cos(np.pi * np.outer(place + 0.5, np.arange(8)) / 43) for place in (rows, columns))
    waves = (down[:, :, None] * across[:, None, :]).reshape(1849, 64)[:, 1:]
    embeddings = load_method("position").embeddings("olinda")
    assert embeddings.ids == load_dataset("olinda").ids()
    assert np.abs(embeddings.values - waves).max() <= 1 / 512


def test_random_splits_reward_it_and_blocks_with_a_margin_hardly_do() -> None:
    embeddings, task = load_method("position").embeddings("olinda"), load_task("olinda_elevation_std")
    by_chance, by_block = (score(embeddings, task, f"ridge+k=10{rest}").mean for rest in ("", ",splitter=group"))
    assert by_chance > 0.5
    assert by_block < by_chance - 0.2
