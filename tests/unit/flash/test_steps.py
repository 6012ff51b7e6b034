"""Constants in the place of their names, and definitions that nobody mentions: each step by itself."""

import ast
from collections import Counter

from whenabouts_edge.flash.constants import put_constants_in_place
from whenabouts_edge.flash.mentions import drop_unmentioned


def test_constants_stand_where_they_are_used():
    """Numbers, short texts and what is made of them, also of other modules; not what is large, or set twice."""
    trees = {
        "one": ast.parse(
            "FIRST, SECOND = range(2)\nLESS = -(SECOND << 4)\nNAME = 'short'\nLONG = 'a longer text'\n"
            "LARGE = 1 << 30\nTWICE = 1\nTWICE = 2\nSET = 3\nsmall = 4\n"
        ),
        "two": ast.parse(
            "from one import LESS as LEAST, NAME, LONG, LARGE, TWICE, SET, small\nimport one\none.SET = 5\n"
            "MORE = LEAST - 1\nfound = [LEAST, MORE, NAME, LONG, LARGE, TWICE, SET, small]\n"
        ),
    }
    put_constants_in_place(trees)
    found = ast.unparse(trees["two"].body[-1])
    assert found == "found = [-16, -17, 'short', LONG, LARGE, TWICE, SET, small]"


def test_what_nobody_mentions_goes_until_nothing_does():
    """A function that itself alone mentions, what it used, and the import; not what a text names or Python calls."""
    trees = {
        "one": ast.parse(
            "from os import sep\ndef alone(): return alone() + deeper()\ndef deeper(): return sep\n"
            "def by_text(): pass\ndef used(): pass\nSTAYS = used()\n_GONE = 3\n"
            "class Kept:\n    def __len__(self): return 1\n    def gone(self): pass\n    def called(self): pass\n"
        ),
        "two": ast.parse("from one import Kept, used, alone\nKept().called()\nprint('by_text')\n"),
    }
    drop_unmentioned(trees, Counter(["STAYS"]))  # `deeper` goes after `alone`, and `sep` after both
    assert ast.unparse(trees["one"]) == (
        "def by_text():\n    pass\n\ndef used():\n    pass\nSTAYS = used()\n\nclass Kept:\n\n"
        "    def __len__(self):\n        return 1\n\n    def called(self):\n        pass"
    )
    assert ast.unparse(trees["two"].body[0]) == "from one import Kept"
