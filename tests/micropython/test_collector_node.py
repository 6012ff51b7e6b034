"""A simulated board's collections while Python runs take nothing that is still used."""

import pytest

from support.board.node_board import Console
from whenabouts_sim.boards.node_board import NodeBoard


def printed(flash, heap_kb, main):
    """What main.py printed on a board, up to its prompt."""
    (flash / "main.py").write_text(main)
    with NodeBoard(flash, heap_kb=heap_kb) as board:
        console = Console(board)
        text = console.wait("the prompt", lambda text: text.endswith(">>> "))
        console.close()
    return text


COLLECTED = """
import gc, time
class Node:
    def __init__(self, n): self.n, self.next = n, None
def chain(depth):
    here = [Node(k) for k in range(20)]
    time.ticks_us()
    if depth:
        deeper = chain(depth - 1)
        gc.collect()
        return here + deeper
    return here
def numbers():
    for n in range(300):
        text = "x%d" % n
        time.ticks_ms()
        yield text, [n]
for turn in range(60):
    found = chain(8)
    assert [one.n for one in found] == list(range(20)) * 9
    assert {text: value[0] for text, value in numbers()} == {"x%d" % n: n for n in range(300)}
    try:
        raise ValueError("kept %d" % turn)
    except ValueError as error:
        gc.collect()
        assert str(error) == "kept %d" % turn
print("whole")
"""


def test_functions_generators_and_exceptions_stay_whole(tmp_path):
    """Lists, objects, generators and exceptions on frames of all depths, collected at every step in a small heap."""
    assert "whole" in printed(tmp_path, 96, COLLECTED)


HANDED_OVER = """
import gc, time
class Made:
    def __init__(self, *numbers, **named):
        if collects: gc.collect()
        self.kept = [[n, n + 1] for n in range(len(numbers), 20)]
class Fewer(Made):
    def __init__(self, one, two):
        super().__init__(one, two)
        if collects: time.ticks_us()
class New:
    def __new__(cls, *numbers):
        self = object.__new__(cls)
        if collects: gc.collect()
        self.kept = [[n, n + 1] for n in range(len(numbers), 20)]
        return self
def closed(first):
    def inner(*numbers):
        if collects: gc.collect()
        kept = [[n, n + 1] for n in range(first + len(numbers), 20)]
        return Kept(kept)
    return inner
class Kept:
    def __init__(self, kept):
        self.kept = kept
def made(turn):
    count = turn % 12
    numbers = [0] * count
    if kind == "constructor": return Made(*numbers)
    if kind == "names": return Made(a=1, b=[2], **{"n%d" % n: n for n in range(count)})
    if kind == "super": return Fewer(1, 2)
    if kind == "new": return New(*numbers)
    return closed(0)(*numbers)
holes = []
bad = 0
for turn in range(240):
    holes = [bytearray(16 * (n % 5) + turn % 16) for n in range(turn % 50)]
    holes = holes[::2]
    collects = False
    expected = made(turn).kept
    gc.collect()  # so that what a call frees is the next to be taken
    collects = True
    one = made(turn)
    filling = [[n] for n in range(30)]
    if one.kept != expected or filling != [[n] for n in range(30)]:
        bad += 1
print("bad", bad)
"""


OTHERS = [pytest.param(kind, marks=pytest.mark.deep) for kind in ("names", "super", "new")]  # ways to a constructor


@pytest.mark.parametrize("kind", ["constructor", "closure", *OTHERS])
def test_what_is_handed_to_a_call_is_not_freed_twice(tmp_path, kind):
    """Constructors and closures that collect, with up to twelve arguments and holes of many sizes in the heap."""
    for heap_kb in (64, 96, 192):
        assert printed(tmp_path, heap_kb, f"kind = {kind!r}\n{HANDED_OVER}").splitlines()[0] == "bad 0"
