"""The check of the commonest mistake with a coder: signed roots, as AlphaEarth's int8 has them, read linearly."""

from __future__ import annotations

import numpy as np

BELL, HOLLOW = 0.13, 0.07  # of bell-shaped values, and of their signed roots half as many, lie so near to 0
NEAR = 4  # parts of the median


def read_linearly(values: np.ndarray) -> str:
    """Whether numbers seem to be signed roots that nobody has squared, such as AlphaEarth's int8, in words.

    They lie on a grid of at most 255 levels, and either few of them near 0, where numbers of a bell shape have most, or
    their squares have all the same length.
    """
    unit = next((unit for unit in (1.0, 127.5, 127.0) if _on_grid(values * unit)), 0.0)
    if not unit:
        return ""
    codes = np.rint(values * unit)
    size = np.abs(codes)
    near = float((size <= np.median(size) / NEAR).mean())
    lengths = np.linalg.norm((size / 127.5) ** 2, axis=1)
    constant = lengths.std() < 0.03 and abs(lengths.mean() - 1) < 0.03
    if near > HOLLOW and not constant:
        return ""
    what = f"values from {values.min():g} to {values.max():g} on {len(np.unique(codes))} levels, {near:.0%} near 0"
    length = ", and squared they are unit vectors" if constant else f" ({BELL:.0%} would be if they were linear)"
    return f"{what}{length}: they seem to be signed roots read linearly. Decode them first: sign(q)(q/127.5)²"


def _on_grid(scaled: np.ndarray) -> bool:
    """Whether all are whole numbers of a signed byte, up to the rounding of printed digits."""
    whole = np.rint(scaled)
    return bool(np.abs(scaled - whole).max() < 0.01 and 1 < np.abs(whole).max() <= 128)
