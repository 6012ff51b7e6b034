"""How a rule of a job is written beyond its name, distance, certainty and DELAY."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from whenabouts_protocol.messages.compiled_rule import DERIVED_PREFIX

LENGTH_MS = 1500  # of the longest stamp while UTC is known
UNPAID = "SEQ(shelf a, !till c, exit e)"


class Owner(NamedTuple):
    """Whose readings a rule takes from a stream: of a site, or of one gateway of it."""

    site: str
    gateway: str = ""

    def declared(self) -> str:
        """Its part of the declaration of a stream."""
        return f' AT SITE "{self.site}"' + (f' GATEWAY "{self.gateway}"' if self.gateway else "")


class Near(NamedTuple):
    """A rule of a gateway: the limits of @b - @a, how certain they must be kept, in percent, its name, and the end of LENGTH
    of both streams.
    """

    least_ms: int
    most_ms: int
    percent: int
    name: str = "near"
    length_ms: int = LENGTH_MS

    @property
    def stream(self) -> str:
        """The stream of its pairs."""
        return DERIVED_PREFIX + self.name


class Sending(NamedTuple):
    """Rules that a gateway is sent over the broker, us since the begin; None: what it was sent is taken back."""

    at_us: int
    nears: tuple[Near, ...] | None


class StreamForm(NamedTuple):
    """What a rule declares of a stream: DELAY, the end of LENGTH, OFFSET, whose readings it takes; None: everybody's."""

    delay_ms: int
    length_ms: int = LENGTH_MS
    offset_ms: int = 0
    owner: Owner | None = None


class Form(NamedTuple):
    """streams: of each stream of the rule, in their order; none: DELAY of the rule, no OFFSET. Of pairs: between_ms, the
    limits of @b - @a in place of a distance; choice, what follows the conditions. Of matches: pattern; options, the words
    behind it; at_once: emitted on arrival, and retracted when it proves wrong; where: conditions; is_below: the window is
    longer than any match; is_across: events may have any keys. Of a group: modality.
    """

    streams: tuple[StreamForm, ...] = ()
    between_ms: tuple[int, int] | None = None
    choice: str = ""
    pattern: str = UNPAID
    options: str = ""
    at_once: bool = False
    where: tuple[str, ...] = ()
    is_below: bool = False
    is_across: bool = False
    modality: str = "DEFINITELY"

    def declared(self, names: Sequence[str], delay_ms: int) -> Iterator[str]:
        """The declarations of streams of tags."""
        forms = self.streams or (StreamForm(delay_ms),) * len(names)
        for name, one in zip(names, forms, strict=True):
            offset = f" OFFSET {one.offset_ms} ms" if one.offset_ms else ""
            owner = one.owner.declared() if one.owner else ""
            length = f"LENGTH 0 us .. {one.length_ms} ms"
            yield f'STREAM {name} FROM "{name}/tags"{owner} DELAY {one.delay_ms} ms {length}{offset}\n'

    def match(self, window_ms: int) -> str:
        """The pattern with its window and all that follows."""
        within = (
            f"WITHIN {'< ' if self.is_below else ''}{window_ms} ms {'ACROSS KEYS' if self.is_across else 'PER key'}"
        )
        where = f"WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"{self.pattern} {within} {self.options} {'ON ARRIVAL' if self.at_once else ''} {where}"

    def predicate(self, distance_ms: int) -> str:
        """What holds of the times of a pair."""
        if self.between_ms is None:
            return f"|@a - @b| <= {distance_ms} ms"
        lo, hi = self.between_ms
        return f"@b - @a IN [{lo} ms, {hi} ms]"


PLAIN = Form()


@dataclass(frozen=True)
class RulePlan:
    """A rule that the job runs: its name, distance of pairs or window of matches, percent of certainty, DELAY; gateways
    that are a group; how else it is written.
    """

    name: str
    distance_ms: int
    percent: int
    delay_ms: int
    gateways: tuple[str, ...] = ()
    form: Form = PLAIN
