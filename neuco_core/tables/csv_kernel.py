"""CSV to float32, compiled: rows of plain numbers, and the places of everything else.

A number is read as Python's ``float`` reads it (the nearest float64) and then rounded to float32, bit for bit. With
digits up to 2^53 and a power of ten up to 22 that is one exact multiplication or division. Otherwise digits, power and
product are rounded once each: the result is at most 3 units in the last place of a float64 from the truth and 4 from
the nearest float64. If no border between two float32 is within 8 units, both round alike. The few others, and all that
is no plain number, are left to the caller. All of it is in one file because the compiler's cache looks at one file.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from neuco_core.plugins.compiled import compiled, first_call

ID, IGNORED = -1, -2  # what a column may be, besides the number of a dimension
MOST_DIGITS = 19  # 10^19 is below 2^64
POWERS = np.array([float(f"1e{n}") for n in range(64)])
EXACT_POWER, EXACT_DIGITS = 22, np.uint64(1 << 53)  # 10^22 is the last power of ten that a float64 holds exactly
SMALLEST, LARGEST = 2.0**-125, 3.4e38  # surely normal as float32, and finite
LOW, MIDDLE, MARGIN = np.uint64((1 << 29) - 1), np.uint64(1 << 28), np.uint64(8)  # float64 has 29 bits more
BROKEN, FULL, DONE = -1, 0, 1

COMMA, NEWLINE, RETURN, QUOTE, SPACE = 44, 10, 13, 34, 32
POINT, MINUS, PLUS, ZERO, LETTER_E, CAPITAL_E = 46, 45, 43, 48, 101, 69


@compiled(keep=False)
def _byte(text, at):  # type: ignore[no-untyped-def]
    """A byte; an unsigned index needs no look whether it counts from the end, which takes a quarter of the time."""
    return text[np.uint64(at)]


@compiled(keep=False)
def _is_digit(text, at):  # type: ignore[no-untyped-def]
    return np.uint8(_byte(text, at) - ZERO) <= 9


@compiled(keep=False)
def _number(text, at, bits):  # type: ignore[no-untyped-def]
    """The number that begins at a place: its float64, where it ends, and whether its float32 is surely right."""
    while _byte(text, at) == SPACE:
        at += 1
    # No branch: signs are as good as random, so the processor would guess wrong half of the time.
    sign = 1.0 - 2.0 * (_byte(text, at) == MINUS)
    at += (_byte(text, at) == MINUS) | (_byte(text, at) == PLUS)
    begin, digits = at, np.uint64(0)
    while _is_digit(text, at):
        digits = digits * np.uint64(10) + np.uint64(_byte(text, at) - ZERO)
        at += 1
    seen, power = at - begin, 0
    if _byte(text, at) == POINT:
        at += 1
        behind = at
        while _is_digit(text, at):
            digits = digits * np.uint64(10) + np.uint64(_byte(text, at) - ZERO)
            at += 1
        seen, power = seen + at - behind, behind - at
    if seen > MOST_DIGITS:
        while _byte(text, begin) == ZERO or _byte(text, begin) == POINT:  # zeros at the beginning do not count
            seen -= _byte(text, begin) == ZERO
            begin += 1
    good = 0 < seen <= MOST_DIGITS
    if _byte(text, at) == LETTER_E or _byte(text, at) == CAPITAL_E:
        at += 1
        below = _byte(text, at) == MINUS
        if below or _byte(text, at) == PLUS:
            at += 1
        exponent, begin = 0, at
        while _is_digit(text, at):
            exponent = min(exponent * 10 + np.int64(_byte(text, at) - ZERO), 10000)  # type: ignore[assignment]
            at += 1
        good = good and at > begin
        power += -exponent if below else exponent
    while _byte(text, at) == SPACE:
        at += 1
    size = abs(power)
    if not good or digits == 0 or size >= POWERS.size:
        return sign * 0.0, at, good and digits == 0
    value = np.float64(digits)
    value = value / POWERS[size] if power < 0 else value * POWERS[size]
    if size > EXACT_POWER or digits > EXACT_DIGITS:
        bits[0] = value
        low = bits.view(np.uint64)[0] & LOW
        good = MIDDLE - low > MARGIN if low < MIDDLE else low - MIDDLE > MARGIN
    good = good and SMALLEST < value < LARGEST
    return sign * value, at, good


@compiled(keep=False)
def _ends(byte, quoted):  # type: ignore[no-untyped-def]
    return byte == (QUOTE if quoted else COMMA) or byte in (NEWLINE, RETURN)


@compiled(keep=False)
def _end(text, at, quoted, ascii_only):  # type: ignore[no-untyped-def]
    """Where a field ends that begins at a place; -1 if it needs a closer look."""
    while not _ends(_byte(text, at), quoted):
        if _byte(text, at) == 0 or (ascii_only and _byte(text, at) >= 128):
            return -1
        at += 1
    return -1 if quoted and _byte(text, at) != QUOTE else at


@compiled(keep=True)
def read_rows(text, at, stop, targets, values, row, names, odd):  # type: ignore[no-untyped-def]
    """Read whole lines from ``at`` to ``stop``; a newline must follow the last one.

    ``targets`` says of each column which dimension it is. Fills ``values`` from ``row`` on, ``names`` with the place of
    each row's id, ``odd`` with row, dimension and place of each cell that is no plain number. Returns what happened,
    the next place, the next row and the number of odd cells: FULL if ``odd`` has no room for one more row, BROKEN if
    this is no table of that many columns, or one that needs a closer look.
    """
    bits = np.empty(1, np.float64)
    count, columns = 0, targets.size
    while at < stop:
        if odd.shape[0] - count < columns:
            return FULL, at, row, count
        if _byte(text, at) == NEWLINE or row == values.shape[0]:
            return BROKEN, at, row, count
        for column in range(columns):
            target, quoted, plain, end = targets[column], _byte(text, at) == QUOTE, False, at
            begin = at + 1 if quoted else at
            if target >= 0:
                value, end, plain = _number(text, begin, bits)
                values[row, target] = np.float32(value)
                plain = plain and _ends(_byte(text, end), quoted)
            if not plain:
                end = _end(text, begin, quoted, target == IGNORED)
                if end < 0:
                    return BROKEN, at, row, count
                if target >= 0:
                    odd[count, 0], odd[count, 1], odd[count, 2], odd[count, 3] = row, target, begin, end
                    count += 1
                elif target == ID:
                    names[row, 0], names[row, 1] = begin, end
            at = end + 1 if quoted else end
            last = column == columns - 1
            if last and _byte(text, at) == RETURN:
                at += 1
            if _byte(text, at) != (NEWLINE if last else COMMA):
                return BROKEN, at, row, count
            at += 1
        row += 1
    return DONE, at, row, count


@compiled(keep=True)
def count_lines(text, size):  # type: ignore[no-untyped-def]
    """The number of newlines, and whether there are NUL bytes."""
    lines, zeros = 0, 0
    for at in range(size):
        lines += text[at] == NEWLINE
        zeros += text[at] == 0
    return lines, zeros > 0


@cache
def warm() -> None:
    """Compile, or load what was compiled before."""
    text, targets = np.zeros(4, np.uint8), np.array([ID, 0], np.int64)
    text[:] = 97, COMMA, ZERO, NEWLINE
    first_call(count_lines, text, 4)
    first_call(
        read_rows, text, 0, 4, targets, np.empty((1, 1), np.float32), 0, np.empty((1, 2), int), np.empty((2, 4), int)
    )
