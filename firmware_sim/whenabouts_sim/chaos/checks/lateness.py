"""Which readings came late for a rule, by the definition of frontiers, from what each micro-batch has read.

A watermark counts for the micro-batches after the one that has read it, or one later (`effective_at`). The frontier of a
stream is the least watermark of the gateways that feed it, but not less than the greatest less DELAY, and never falls. A
reading that ends before it is late; an event that ends later, and began more than LENGTH before it, is too long.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, LatwinRule, Rule, Stream
from whenabouts_protocol.group_state import VIEW
from whenabouts_sim.chaos.checks.distance import horizons, useful_us
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedFrontier, LandedReading
from whenabouts_sim.chaos.checks.results import TOO_LONG, Told
from whenabouts_sim.chaos.parts.landing_files import Ends, ends_of


def ends_of_batches(out: Path) -> list[Ends]:
    """How far each micro-batch has read the landing."""
    folder = out / "_checkpoint" / "offsets"
    numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdecimal())
    return [ends_of(json.loads((folder / str(n)).read_text().splitlines()[2])) for n in numbers]


def steps_of(rule: Rule, landed: Landed, ends: Sequence[Ends]) -> list[Ends]:
    """Those of the micro-batches in which the rule got a reading or a watermark: of others its shards learn nothing."""
    streams = streams_of(rule)
    files = {
        one.file
        for one in (*landed.readings, *landed.copies)
        if one.kind != "gap" and any(_is_part(one, stream) and not _is_left_out(rule, one) for stream in streams)
    }
    if needs_states(rule):
        files |= {one.file for one in landed.readings if VIEW in (one.attrs or "")}
    files |= {
        one.file
        for one in landed.frontiers
        if isinstance(rule, LatwinRule) or any(_says(one, stream) for stream in streams)
    }
    begins = [{}, *ends]
    return [
        end for begin, end in zip(begins, ends, strict=False)
        if any(file.within(end) and not file.within(begin) for file in files)
    ]  # fmt: skip


def _is_left_out(rule: Rule, one: LandedReading) -> bool:
    """True if a reading is not handed to the shards: no pair can hold it."""
    return isinstance(rule, CorrelateRule) and all(
        is_useless(rule, side, one) for side, stream in enumerate((rule.a, rule.b)) if _is_part(one, stream)
    )


def needs_states(rule: Rule) -> bool:
    """True if the order of a rule's events is that of clocks, whose meaning the states of groups tell."""
    return isinstance(rule, CepRule) and rule.pattern.mode == "causal"


def effective_at(ends: Sequence[Ends]) -> Ends:
    """How far the files have been read whose watermarks count after these micro-batches.

    Those of a landing with several parts count one micro-batch later: what they cover may be in the part of another ingest.
    """
    if ends and len(ends[-1]) == 1:
        return ends[-1]
    return ends[-2] if len(ends) > 1 else {}


def broken_lateness(rule: Rule, told: Told, landed: Landed, ends: Sequence[Ends]) -> Iterator[str]:
    """Readings that were told as late and were not, or the other way round, or with another reason."""
    if not isinstance(rule, CepRule | CorrelateRule):
        return
    for stream, reasons in _aside(rule, landed, ends):
        too_long = {one for one, reason in reasons.items() if reason == TOO_LONG}
        late = reasons.keys() - too_long
        # A repeat of a reading whose original was forgotten is told as late, too. What waits for a state may become
        # too long meanwhile.
        longest_us = longest_event_us(rule) if isinstance(rule, CepRule) and needs_states(rule) else math.inf
        feeding = [one for one in landed.readings if feeds(one, stream) and one.t_max - one.t_min <= longest_us]
        mine = {one.identity for one in feeding} - landed.again
        for name, found, expected in (("late", told.late, late), ("too long", told.too_long, too_long)):
            for one in sorted((found & mine) - expected):
                yield f"{rule.name}: {one} of {stream.name} was told as {name}, and was not"
            for one in sorted((expected & mine) - found):
                yield f"{rule.name}: {one} of {stream.name} came {name}, and was not told"
        for row in told.aside:
            one, reason = row.readings[0], row.columns["reason"]
            if one in mine and reason != reasons.get(one, reason):
                yield f"{rule.name}: {one} of {stream.name} was told as {reason!r}, expected {reasons[one]!r}"


def broken_job_frontiers(
    rule: Rule, said: Iterable[tuple[int, Mapping[str, int]]], landed: Landed, ends: Sequence[Ends]
) -> Iterator[str]:
    """Frontiers that are not those of the definition. said: by stream, after micro-batches. ends: of all micro-batches."""
    if not isinstance(rule, CepRule | CorrelateRule):
        return
    steps = steps_of(rule, landed, ends)
    after = {one.name: _frontiers(rule, one, landed, [*steps, {}])[1:] for one in streams_of(rule)}
    for batch, found in said:
        done = sum(step in ends[: batch + 1] for step in steps)
        wanted = {name: of[done - 1] for name, of in after.items() if done and of[done - 1] is not None}
        if found != wanted:
            yield f"{rule.name}: after micro-batch {batch} its frontiers are {found}, expected {wanted}"


def _aside(
    rule: CepRule | CorrelateRule, landed: Landed, ends: Sequence[Ends]
) -> Iterator[tuple[Stream, dict[Id, str]]]:
    """The readings of each stream that are not waited for, with the reason."""
    streams = streams_of(rule)
    frontiers = {stream.name: _frontiers(rule, stream, landed, ends) for stream in streams}
    for stream in streams:
        reasons = dict[Id, str]()
        for one in landed.readings:
            batch = next((n for n, end in enumerate(ends) if one.file.within(end)), None)
            if batch is None or not feeds(one, stream):
                continue
            now_us = {name: of[batch] for name, of in frontiers.items()}
            judged = _event if isinstance(rule, CepRule) else _of_pair
            reason = judged(rule, stream, one, now_us)  # type: ignore[arg-type]
            if reason is not None:
                reasons[one.identity] = reason
        yield stream, reasons


def _event(rule: CepRule, stream: Stream, one: LandedReading, frontiers: Mapping[str, int | None]) -> str | None:
    """Late, or begun before what is kept for a stamp's length. Events are in order, so the slowest stream decides, each
    moved by its OFFSET.
    """
    reached_us = [us + other.offset_us for other in rule.streams if (us := frontiers[other.name]) is not None]
    if len(reached_us) < len(frontiers):
        return None
    if rule.count:  # the count of the stretch that its middle is in was told
        return "late" if middle_us(rule, one) < counted_before(rule, min(reached_us)) else None
    if one.t_max + stream.offset_us < min(reached_us):
        return "late"
    return TOO_LONG if one.t_min + stream.offset_us < min(reached_us) - longest_event_us(rule) else None


def moved(rule: CepRule, one: LandedReading) -> LandedReading:
    """The reading with the OFFSET of its stream."""
    moved_us = next((stream.offset_us for stream in rule.streams if stream.pattern == one.stream), 0)
    return one._replace(t_min=one.t_min + moved_us, t_max=one.t_max + moved_us)


def middle_us(rule: CepRule, one: LandedReading) -> int:
    """The point that a rule with COUNT takes a reading for: the middle of its stamp, moved by OFFSET."""
    at = moved(rule, one)
    return at.t_min + (at.t_max - at.t_min) // 2


def counted_before(rule: CepRule, frontier_us: int) -> int:
    """The end of the last stretch that is told at a frontier: half of the longest stamp has passed since."""
    every_us = rule.count.every_us if rule.count else None
    assert every_us is not None
    return (frontier_us - (longest_event_us(rule) + 1) // 2) // every_us * every_us


def longest_event_us(rule: CepRule) -> int:
    """The longest stamp that is waited for, of any stream of the rule."""
    return max(one.length_us[1] if one.length_us else rule.pattern.window_us for one in rule.streams)


def _of_pair(
    rule: CorrelateRule, stream: Stream, one: LandedReading, frontiers: Mapping[str, int | None]
) -> str | None:
    """Late, and expired if partners of it may be forgotten. A stamp so long that no pair can hold it is looked at only
    where it is told as unmatched.
    """
    frontier_us, side = frontiers[stream.name], int(stream == rule.b)
    if is_useless(rule, side, one) or frontier_us is None or one.t_max >= frontier_us:
        return None
    forgotten = horizons(rule, frontiers)
    return f"{'late' if forgotten is None or one.t_max >= forgotten[side] else 'expired'} {'ab'[side]}"


def is_useless(rule: CorrelateRule, side: int, one: LandedReading) -> bool:
    """True if no pair can hold a reading, nor is it looked at to be told as unmatched."""
    return one.t_max - one.t_min > useful_us(rule) and (side == 1 or rule.kind == "inner")


def _frontiers(rule: CepRule | CorrelateRule, stream: Stream, landed: Landed, ends: Sequence[Ends]) -> list[int | None]:
    """The frontier of a stream during each micro-batch. A gateway feeds it by readings that can be in a result."""
    mine = [one for one in landed.readings if feeds(one, stream)]
    if isinstance(rule, CorrelateRule):
        mine = [one for one in mine if not is_useless(rule, int(stream == rule.b), one)]
    found, value = list[int | None](), None
    for batch in range(len(ends)):
        upto, effective = (ends[batch - 1] if batch else {}), effective_at(ends[:batch])
        known: dict[tuple[str, str], int] = {}
        for said in landed.frontiers:
            if said.file.within(effective) and _says(said, stream):
                place = said.site, said.gateway
                known[place] = max(said.frontier_us, known.get(place, said.frontier_us))
        if known:
            feeding = {(one.site, one.gateway) for one in mine if one.file.within(upto)}
            least = max(known.values()) - stream.delay_us
            now_us = max(least, min(known.values())) if feeding <= known.keys() else least
            value = now_us if value is None else max(value, now_us)
        found.append(value)
    return found


def streams_of(rule: Rule) -> tuple[Stream, ...]:
    """The streams of a rule of any kind."""
    return (rule.a, rule.b) if isinstance(rule, CorrelateRule) else rule.streams


def feeds(one: LandedReading, stream: Stream) -> bool:
    """True if a reading is of the stream and of its owner."""
    return one.kind in ("tag", "measure") and _is_part(one, stream)


def _is_part(one: LandedReading, stream: Stream) -> bool:
    return one.stream == stream.pattern and _is_of(stream, one.site, one.gateway)


def _says(said: LandedFrontier, stream: Stream) -> bool:
    """True if a watermark is of the stream and of its owner."""
    return stream.pattern in said.streams and _is_of(stream, said.site, said.gateway)


def _is_of(stream: Stream, site: str, gateway: str) -> bool:
    return stream.site in (None, site) and stream.gateway in (None, gateway)
