"""Which process is killed when: decided by one seed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

QUIET_S = 10.0  # without kills, at the begin and at the end
MEAN_S = 7.0  # from one kill to the next
LONGEST_DOWN_S = 8.0


@dataclass(frozen=True)
class Kill:
    """SIGKILL for the process `target` at `at_s` after the begin; it is started again `down_s` later."""

    at_s: float
    target: str
    down_s: float


def draw_kills(seed: int, seconds: float, rests_s: Mapping[str, float]) -> tuple[Kill, ...]:
    """The kills of a run, in the order of time.

    rests_s: how long each process is left alone after it was started again, so that it gets something done.
    """
    chance = Random(f"soak/{seed}")
    free_s = dict.fromkeys(rests_s, 0.0)
    kills = list[Kill]()
    at_s = QUIET_S
    while (at_s := at_s + chance.expovariate(1 / MEAN_S)) < seconds - QUIET_S:
        rested = [target for target, since_s in free_s.items() if since_s <= at_s]
        if not rested:
            continue
        kill = Kill(at_s, chance.choice(rested), chance.uniform(0.1, LONGEST_DOWN_S))
        free_s[kill.target] = at_s + kill.down_s + rests_s[kill.target]
        kills.append(kill)
    return tuple(kills)
