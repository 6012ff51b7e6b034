"""Frontiers by their definition, from the whole history each time."""

from typing import NamedTuple


class Step(NamedTuple):
    """One step of a stream: the gateways of its readings, and its watermarks (gateway, us)."""

    gateways: list[str]
    watermarks: list[tuple[str, int]]


def stream_frontier(steps: list[Step], delay_us: int) -> int | None:
    """F after the last of the steps: the greatest that any prefix of them defines, None if none defines one."""
    defined = [_defined(steps[: n + 1], delay_us) for n in range(len(steps))]
    return max((value for value in defined if value is not None), default=None)


def silent(steps: list[Step], delay_us: int) -> list[str]:
    """Gateways whose watermark in effect is below F."""
    value, known = stream_frontier(steps, delay_us), _in_effect(steps)
    return [] if value is None else sorted(name for name, us in known.items() if us < value)


def rule_frontier(streams: list[list[Step]], delays_us: list[int], offsets_us: list[int], limit_us: int) -> int | None:
    """The least frontier of all streams, each moved by its offset, within +- limit; None while one is unknown."""
    values = [stream_frontier(steps, delay) for steps, delay in zip(streams, delays_us, strict=True)]
    if any(value is None for value in values):
        return None
    least = min(value + offset for value, offset in zip(values, offsets_us, strict=True))
    return max(min(least, limit_us), -limit_us)


def group_frontier(watermarks_us: list[int | None], delays_us: list[int], offsets_us: list[int], limit_us: int) -> int:
    """The greatest time, up to a limit, that every process has passed: by its watermark, or by one of the group less DELAY.

    Times are moved by the process's offset. -limit - 1 if there is none within the limits.
    """
    known = [us for us in watermarks_us if us is not None]

    def passed(t: int) -> bool:
        return all(
            (own is not None and t <= own + offset) or any(t <= us - delay + offset for us in known)
            for own, delay, offset in zip(watermarks_us, delays_us, offsets_us, strict=True)
        )

    times = {us - less + offset for us in known for less in (0, *delays_us) for offset in offsets_us}
    return max((t for t in (*times, limit_us) if -limit_us <= t <= limit_us and passed(t)), default=-limit_us - 1)


def _defined(steps: list[Step], delay_us: int) -> int | None:
    known = _in_effect(steps)
    if not known:
        return None
    feeding = {name for step in steps for name in step.gateways}
    latest = max(known.values()) - delay_us
    return latest if feeding - set(known) else max(latest, min(known.values()))


def _in_effect(steps: list[Step]) -> dict[str, int]:
    """The greatest watermark of each gateway in all steps but the last: watermarks count from the next step on."""
    known: dict[str, int] = {}
    for step in steps[:-1]:
        for name, us in step.watermarks:
            known[name] = max(us, known.get(name, us))
    return known
