"""The rows of matches that one event completes, in lexicographic order."""

from whenabouts_cloud.jit import Array, bare


@bare
def sort_rows(rows: Array, which: Array, first: int, last: int, spare: Array) -> None:
    """Rows [first, last) in lexicographic order, then by pattern: nearly in order, so by insertion, many by Shell's way."""
    step = 1
    while step * 16 < last - first:
        step = step * 3 + 1
    while step > 0:
        for i in range(first + step, last):
            if not _later(rows, which, i - step, i):
                continue
            for column in range(rows.shape[1]):
                spare[column] = rows[i, column]
            own = which[i] if len(which) else 0
            j = i
            while j - step >= first and _behind(rows, which, j - step, spare, own):
                for column in range(rows.shape[1]):
                    rows[j, column] = rows[j - step, column]
                if len(which):
                    which[j] = which[j - step]
                j -= step
            for column in range(rows.shape[1]):
                rows[j, column] = spare[column]
            if len(which):
                which[j] = own
        step //= 3


@bare
def _later(rows: Array, which: Array, a: int, b: int) -> bool:
    """Whether row a belongs behind row b."""
    for column in range(rows.shape[1]):
        if rows[a, column] != rows[b, column]:
            return bool(rows[a, column] > rows[b, column])
    return bool(len(which) > 0 and which[a] > which[b])


@bare
def _behind(rows: Array, which: Array, a: int, spare: Array, own: int) -> bool:
    """Whether row a belongs behind the spare one."""
    for column in range(rows.shape[1]):
        if rows[a, column] != spare[column]:
            return bool(rows[a, column] > spare[column])
    return bool(len(which) > 0 and which[a] > own)
