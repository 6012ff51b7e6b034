"""A pattern of events: parsed from text, and compiled for the types of a stream of events."""

from collections.abc import Callable, Sequence
from typing import Any

from lark import Token

from whenabouts_cloud.language.errors import Mistake, RuleError
from whenabouts_cloud.language.grammar import Part, tree_of
from whenabouts_cloud.language.sequences import read_parts
from whenabouts_cloud.language.timing import Notes
from whenabouts_cloud.pattern.compile import compile_pattern
from whenabouts_cloud.pattern.elements import PatternParts
from whenabouts_cloud.pattern.plan import Plan


class Pattern(PatternParts):
    """Events in an order within a window: the parts, with the conversions from text and to a plan."""

    @staticmethod
    def parse(text: str, unit_us: int | None = 1, any_key: bool = False) -> "Pattern":
        """Parse a text such as "SEQ(A, B, !C, D) WITHIN 40"; types may have any names.

        A window without a unit counts in `unit_us` microseconds; with None it needs a unit, as in rules. With `any_key` PER
        may name anything, which `key` of the pattern then holds.

        Raises:
            ValueError: unit_us is not a number of microseconds.
            RuleError: the text has mistakes; each with line and column.
        """
        if unit_us is not None and (not isinstance(unit_us, int) or unit_us < 1):
            raise ValueError(f"unit_us: found {unit_us!r}, expected a whole number of microseconds, 1 or more")
        mistakes: list[Mistake] = []
        tree = tree_of(Part(text), "pattern", text, mistakes)
        pattern = None if tree is None else read_pattern(tree, Notes(mistakes), lambda _: None, unit_us, any_key)
        if pattern is None or mistakes:
            raise RuleError("pattern", mistakes)
        return pattern

    def plan(self, type_names: Sequence[str], longest: int = 0) -> Plan:
        """Compile the plan for events whose type codes are indices of `type_names`; `longest`: longest expected stamp, us.

        Raises:
            ValueError: a type is not among the names, or the pattern exceeds a limit or names unknown elements.
        """
        return compile_pattern(self, type_names, longest)


def read_pattern(
    tree: Any, notes: Notes, check_type: Callable[[Token], Any], unit_us: int | None = None, any_key: bool = False
) -> Pattern | None:
    """Read the pattern of a tree, or return None with notes; the arguments are those of `read_parts`."""
    parts = read_parts(tree, notes, check_type, unit_us, any_key)
    return None if parts is None else Pattern(**vars(parts))
