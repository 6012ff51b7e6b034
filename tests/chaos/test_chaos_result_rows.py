"""The law of what users read of results: each column is told when it differs from the definition, and so are ids."""

import json

from support.landed_readings import landed
from whenabouts_protocol.group_state import PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Landed, LandedFrontier
from whenabouts_sim.chaos.checks.lateness import broken_lateness
from whenabouts_sim.chaos.checks.results import TOO_LONG, Row, Told
from whenabouts_sim.chaos.checks.rules.result_rows import broken_rows
from whenabouts_sim.chaos.parts.job_rules import GROUP, MATCHES, PAIRS, TOGETHER, rule
from whenabouts_sim.chaos.parts.landing_files import FileId

SOURCE = {"site": "hall", "gateway": "gw-1", "boot": 7}


def broken(one, columns, *readings, aside=False):
    """What the law says of a published row of these readings."""
    row = Row(tuple(x.identity for x in readings), columns)
    told = Told([], set(), aside=[row]) if aside else Told([], set(), rows=[row])
    return list(broken_rows(one, told, Landed(list(readings), [])))


def each_is_told(one, columns, readings, changed, aside=False):
    """True if nothing is told of the columns as they are, and a change of each is."""
    assert broken(one, columns, *readings, aside=aside) == []
    for name, value in changed.items():
        [text] = broken(one, {**columns, name: value}, *readings, aside=aside)
        assert f" was told with {name} " in text
    return True


def test_a_pair_has_its_probability_its_key_and_both_stamps():
    """Stamps of 100 us, of which one begins 1000 us after the other: half of the pairs of moments are so near."""
    a, b = landed("dock/tags", 0, 0, 100), landed("door/tags", 1, 1000, 1100)
    sides = [{f"{x}_{name}": value for name, value in SOURCE.items()} for x in "ab"]
    columns = {
        "result_id": "1", "rule": PAIRS, "key": "K", **sides[0], "a_seq": 0, "a_stream": "dock/tags", "a_t_min": 0,
        "a_t_max": 100, **sides[1], "b_seq": 1, "b_stream": "door/tags", "b_t_min": 1000, "b_t_max": 1100,
        "probability": 0.5,
    }  # fmt: skip
    pairs = rule(PAIRS, 1, 10, 1000)
    assert each_is_told(
        pairs, columns, (a, b), {"probability": 0.51, "key": None, "b_t_min": 999, "a_stream": "door/tags"}
    )


def test_a_match_has_the_span_of_its_events():
    a, e = landed("shelf/tags", 0, 5, 9), landed("exit/tags", 1, 50, 60)
    events = [
        SOURCE | {"name": "a", "seq": 0, "stream": "shelf/tags", "t_min": 5, "t_max": 9},
        SOURCE | {"name": "e", "seq": 1, "stream": "exit/tags", "t_min": 50, "t_max": 60},
    ]
    columns = {
        "result_id": "1", "rule": MATCHES, "key": "K", "status": "match", "t_min": 5, "t_max": 60, "probability": 1.0,
        "events": events,
    }  # fmt: skip
    changed = {"t_max": 9, "t_min": 50, "status": "retracted", "probability": None, "events": events[::-1]}
    assert each_is_told(rule(MATCHES, 60_000, 100, 1000), columns, (a, e), changed)


def test_a_verdict_has_the_begin_of_its_last_state():
    attrs = [json.dumps({VIEW: 3, PROCESS: n}) for n in range(2)]
    a = landed("gw-1/state", 0, 5, 9, kind="state", attrs=attrs[0], vclock=[4, 0])
    b = landed("gw-2/state", 1, 6, 8, kind="state", attrs=attrs[1], vclock=[0, 2])
    states = [
        SOURCE | {"name": "g0", "seq": 0, "state": 4, "t_min": 5, "t_max": 9},
        SOURCE | {"name": "g1", "seq": 1, "state": 2, "t_min": 6, "t_max": 8},
    ]
    columns = {
        "result_id": "1", "rule": TOGETHER, "group": GROUP, "view": 3, "verdict": "definitely", "status": "emitted",
        "t_min": 6, "t_max": 9, "states": states,
    }  # fmt: skip
    changed = {"t_min": 5, "t_max": 8, "view": 2, "states": [states[0], states[1] | {"state": 3}]}
    assert each_is_told(rule(TOGETHER, 0, 100, 1000, ("gw-1", "gw-2")), columns, (a, b), changed)


def test_a_late_reading_is_told_with_its_own_columns():
    late = landed("dock/tags", 0, 5, 9)
    columns = {"rule": PAIRS, "reason": "late a", **SOURCE, "seq": 0, "stream": "dock/tags", "key": "K"}
    columns |= {"t_min": 5, "t_max": 9}
    assert each_is_told(rule(PAIRS, 1000, 80, 1000), columns, (late,), {"key": "L", "t_max": 8}, aside=True)


def test_two_results_do_not_have_one_id():
    told = Told([], set(), rows=[Row((), {"result_id": "1"}), Row((), {"result_id": "1"})])
    texts = list(broken_rows(rule(PAIRS, 1000, 80, 1000), told._replace(rows=()), Landed([], [])))
    assert texts == []
    a, b, c = (landed("dock/tags", seq, 0, 9) for seq in range(3))
    rows = [Row((a.identity, x.identity), {"result_id": "1"}) for x in (b, c)]
    one, told, landing = rule(PAIRS, 1000, 80, 1000), Told([], set(), rows=rows), Landed([a, b, c], [])
    assert list(broken_rows(one, told, landing))[-1].endswith("2 results have the id 1")
    assert not any("have the id" in text for text in broken_rows(one, told, landing, may_repeat=True))


def test_a_result_of_what_did_not_land_is_told():
    told = Told([], set(), rows=[Row((landed("dock/tags", 0, 0, 9).identity,), {"result_id": "1"})])
    [text] = broken_rows(rule(PAIRS, 1000, 80, 1000), told, Landed([], []))
    assert "did not land" in text
    assert told.among([]).rows == []


def reasons(one, reading, reason):
    """What the law of lateness says of a reading that is told with a reason, behind a watermark of 20 s."""
    names = ("dock/tags", "door/tags", "shelf/tags", "till/tags", "exit/tags")
    frontier = LandedFrontier(FileId(0, 2), "hall", "gw-1", 20_000_000, names)
    at = {reading.identity}
    late, too_long = (set(), at) if reason == TOO_LONG else (at, set())
    told = Told([], late, too_long, aside=[Row((reading.identity,), {"reason": reason})])
    early = landed(reading.stream, 0, 0, 9)
    return list(broken_lateness(one, told, Landed([early, reading], [frontier]), [{"": 2}, {"": 3}]))


def test_the_reason_of_a_late_reading_is_that_of_the_definition():
    """Of pairs 2 s apart, with stamps of 1.5 s, those are expired that ended 7 s before both watermarks."""
    pairs, unpaid = rule(PAIRS, 2000, 80, 1000), rule(MATCHES, 60_000, 100, 1000)
    late = landed("door/tags", 1, 12_999_990, 13_000_000, file=3)
    assert reasons(pairs, late, "late b") == []
    assert "told as 'late a', expected 'late b'" in reasons(pairs, late, "late a")[0]
    assert "told as 'expired b', expected 'late b'" in reasons(pairs, late, "expired b")[0]
    expired = late._replace(t_max=12_999_999)
    assert reasons(pairs, expired, "expired b") == []
    assert "told as 'late b', expected 'expired b'" in reasons(pairs, expired, "late b")[0]
    assert reasons(unpaid, landed("exit/tags", 1, 0, 19_999_999, file=3), "late") == []
    assert reasons(unpaid, landed("exit/tags", 1, 0, 20_000_001, file=3), TOO_LONG) == []
    assert "told as 'limit'" in reasons(unpaid, landed("exit/tags", 1, 0, 19_999_999, file=3), "limit")[0]
