"""Badges that lie at posts on several gateways, together for a while or one just after the other, with the truth.

Pure, added to a world by its seed. A post is a badge reader with its own badge; the badge is present from its first read
until `LEAVE_US` after its last, as in the agent's presence. Posts meet in cycles: either all are present at once for a
second or two, or the last one comes a moment after the first has left, closer than the clocks can resolve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import NamedTuple

from whenabouts_sim.world.clocks import plausible_clock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import RDM_REPEAT_US, SECOND_US, Sighting, SimReader, World

LEAVE_US = SECOND_US
LIES_US = (800_000, 1_400_000)
MEETS_US = (1_500_000, 2_000_000)  # all are present for at least this long, more than the uncertainty of the clocks
MISSES_US = (15_000, 60_000)  # from the leave of the first to the arrival of the last
REST_US = 1_800_000  # after a cycle; keeps the stamps of a post's next presence apart from those of the last


@dataclass(frozen=True)
class Post:
    """A badge that lies on its own reader; `name` is the name of its gateway's states in rules."""

    name: str
    reader: SimReader
    key: str

    def configuration(self, group: str, posts: Sequence[Post]) -> str:
        """The tables that the configuration of its gateway's agent has beside its readers."""
        members = ", ".join(f'"{post.reader.site}/{post.reader.gateway}"' for post in posts)
        return (
            f'[group]\nname = "{group}"\nmembers = [{members}]\nstream = "{self.name}/state"\n'
            f'[[state]]\nname = "present"\nstream = "{self.reader.stream}"\nkey = "{self.key}"\n'
            f"leave_ms = {LEAVE_US // 1000}\n"
        )


def rule_text(name: str, group: str, posts: Sequence[Post]) -> str:
    """The rule that all posts of the group are taken at once."""
    width = max(len(post.name) for post in posts)
    streams = "\n".join(
        f'STREAM {post.name:<{width}} FROM "{post.name}/state" AT SITE "{post.reader.site}" DELAY 30 s'
        for post in posts
    )
    holds = " AND ".join(f"{post.name}.present" for post in posts)
    return f"{streams}\n\nRULE {name}\n  DEFINITELY {holds}\n  WINDOW 4 IN GROUP {group}\n"


def with_posts(world: World, posts: Sequence[Post]) -> World:
    """The world with cycles at these posts, from a second after its begin to its end, meetings and misses in turn.

    Raises:
        ValueError: the world is too short for a meeting and a miss in each of the two orders.
    """
    random = Random(f"posts/{world.seed}")
    reads: dict[Post, list[int]] = {post: [] for post in posts}
    at_us, cycles = world.epoch_us + SECOND_US, 0
    while True:
        order = list(posts[::-1] if cycles % 4 >= 2 else posts)
        times = (_meeting if cycles % 2 == 0 else _miss)(random, at_us, order)
        end_us = max(moments[-1] for moments in times.values())
        if end_us + LEAVE_US >= world.epoch_us + world.duration_us:
            break
        for post, moments in times.items():
            reads[post] += moments
        at_us, cycles = end_us + LEAVE_US + REST_US, cycles + 1
    if cycles < 4:
        raise ValueError(f"world: {world.duration_us} us long, room for {cycles} cycles at the posts, expected 4")
    seen = [
        Sighting(moment, post.reader.name, number, post.key)
        for post, moments in reads.items()
        for number, moment in enumerate(moments)
    ]
    gateways = dict.fromkeys(post.reader.gateway for post in posts)
    clocks = {g: world.clocks.get(g) or plausible_clock(random, world.epoch_us) for g in gateways}
    return replace(
        world,
        readers=(*world.readers, *(post.reader for post in posts)),
        clocks={**world.clocks, **clocks},
        sightings=tuple(sorted((*world.sightings, *seen))),
    )


def _meeting(random: Random, at_us: int, order: Sequence[Post]) -> dict[Post, list[int]]:
    """They come one after the other; all stay until MEETS_US after the last has come."""
    begins = {post: at_us + n * random.randint(200_000, 700_000) for n, post in enumerate(order)}
    least_us = max(begins.values()) + random.randint(*MEETS_US) - LEAVE_US
    return {post: _lying(begin, least_us + random.randint(0, 600_000)) for post, begin in begins.items()}


def _miss(random: Random, at_us: int, order: Sequence[Post]) -> dict[Post, list[int]]:
    """The first leaves, then the last comes; those between are present before and after."""
    first = _lying(at_us, at_us + random.randint(*LIES_US))
    begin_us = first[-1] + LEAVE_US + random.randint(*MISSES_US)
    last = _lying(begin_us, begin_us + random.randint(*LIES_US))
    between = {post: _lying(at_us + 300_000, begin_us + SECOND_US) for post in order[1:-1]}
    return {order[0]: first, **between, order[-1]: last}


def _lying(begin_us: int, end_us: int) -> list[int]:
    """The reads of a badge that lies on its reader from begin to end, at least one."""
    return list(range(begin_us, max(end_us, begin_us + 1), RDM_REPEAT_US))


class Presence(NamedTuple):
    """A badge was present in [begin_us, end_us)."""

    begin_us: int
    end_us: int


def true_presences(post: Post, reads: Iterable[EmittedFrame]) -> list[Presence]:
    """Presences of its badge by these reads, in order."""
    moments = sorted(e.true_us for e in reads if (e.reader, e.key) == (post.reader.name, post.key))
    if not moments:
        return []
    pauses = [n for n, (a, b) in enumerate(pairwise(moments), 1) if b - a > LEAVE_US]
    edges = [0, *pauses, len(moments)]
    return [Presence(moments[a], moments[b - 1] + LEAVE_US) for a, b in pairwise(edges)]


def together(presences: Sequence[Sequence[Presence]]) -> Mapping[tuple[int, ...], Presence]:
    """All choices of one presence of each post that overlap for longer than an instant, and when. Cost: their number."""
    choices: dict[tuple[int, ...], Presence] = {(): Presence(-(1 << 62), 1 << 62)}
    for of_post in presences:
        choices = {
            (*choice, n): Presence(begin, end)
            for choice, so_far in choices.items()
            for n, one in enumerate(of_post)
            if (begin := max(so_far.begin_us, one.begin_us)) < (end := min(so_far.end_us, one.end_us))
        }
    return choices
