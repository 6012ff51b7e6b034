"""Predicates of global states: trees whose leaves depend on the states of one process, or of some.

    All(Local(0, {3, 4}), AtLeast(2, [Local(p, warm[p].__contains__) for p in range(1, 4)]))

A plain function of a tuple of state numbers is a predicate too. The leaves of a tree are called only once for each
state or combination of states; the tree is then evaluated for all global states of a lattice at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

Numbers = tuple[int, ...]
Function = Callable[[Numbers], bool]


class Predicate(ABC):
    """A node of a tree. Called with a global state, a tuple of state numbers, it returns its value there."""

    @abstractmethod
    def __call__(self, numbers: Numbers) -> bool: ...

    def __and__(self, other: "Predicate") -> "Predicate":
        return All(self, other)

    def __or__(self, other: "Predicate") -> "Predicate":
        return Any(self, other)

    def __invert__(self) -> "Predicate":
        return Not(self)

    def parts(self) -> Iterator["Predicate"]:
        """Yields the nodes directly below."""
        return iter(())


class Related(Predicate):
    """A function of the state numbers of some processes, such as a comparison of values: `f(i, j)` for (0, 2).

    It is called once for each combination in the windows.
    """

    def __init__(self, processes: Sequence[int], function: Callable[..., object]) -> None:
        if not processes or len(set(processes)) != len(processes):
            raise ValueError(f"processes of a comparison: found {list(processes)}, expected one or more, each once")
        self.processes, self.function = tuple(processes), function

    def __call__(self, numbers: Numbers) -> bool:
        return bool(self.function(*(numbers[process] for process in self.processes)))


class Local(Related):
    """A predicate of one process: a function of the state number, or the collection of the numbers where it is true."""

    def __init__(self, process: int, truth: Callable[[int], object] | Collection[int]) -> None:
        holds = truth if callable(truth) else frozenset(int(number) for number in truth).__contains__
        super().__init__((process,), holds)


class _Several(Predicate):
    def __init__(self, *parts: Predicate) -> None:
        for part in parts:
            if not isinstance(part, Predicate):
                raise ValueError(
                    f"part of a predicate: found {part!r}, expected Local, Related, All, Any, Not or AtLeast"
                )
        self._parts = parts

    def parts(self) -> Iterator[Predicate]:
        return iter(self._parts)


class All(_Several):
    """True where all parts are true; without parts true everywhere."""

    def __call__(self, numbers: Numbers) -> bool:
        return all(part(numbers) for part in self._parts)


class Any(_Several):
    """True where some part is true; without parts false everywhere."""

    def __call__(self, numbers: Numbers) -> bool:
        return any(part(numbers) for part in self._parts)


class Not(_Several):
    """True where the part is false."""

    def __init__(self, part: Predicate) -> None:
        super().__init__(part)

    def __call__(self, numbers: Numbers) -> bool:
        return not self._parts[0](numbers)


class AtLeast(_Several):
    """True where at least `least` parts are true."""

    def __init__(self, least: int, parts: Iterable[Predicate]) -> None:
        super().__init__(*parts)
        self.least = least

    def __call__(self, numbers: Numbers) -> bool:
        return sum(part(numbers) for part in self._parts) >= self.least
