"""The law of waiting: what a rule tells was certain by the frontiers that its job had then."""

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.results import Row, Told
from whenabouts_sim.chaos.checks.rules.waits import broken_waits
from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, rule
from whenabouts_sim.chaos.parts.rule_form import Form, StreamForm

S = 1_000_000
SHELF, EXIT = landed("shelf/tags", 0, 100 * S, 101 * S), landed("exit/tags", 1, 102 * S, 103 * S)
BATCH = 5


@pytest.mark.parametrize(
    ("pattern", "options", "due_us"),
    [
        ("SEQ(shelf a, exit e)", "", 0),
        ("SEQ(shelf a, exit e)", "NEXT", 103 * S + 2 * S),
        ("SEQ(shelf a, !till c, exit e)", "", 103 * S + 2 * S),
        ("SEQ(!till c, shelf a, exit e)", "", 101 * S + 2 * S),
        ("SEQ(shelf a, exit e, !till c)", "", 101 * S + 10 * S + 1 + 2 * S),
        ("SEQ(shelf a, exit e)", "SKIP TO NEXT", 100 * S + 10 * S + 1 * 2 * S + 1),
        ("SEQ(shelf a, exit e, !till c)", "SKIP TO NEXT", 100 * S + 10 * S + 2 * 2 * S + 1),
        ("SEQ(shelf a, exit e)", "OVER 50 % SKIP TO NEXT", 100 * S + 10 * S + 2 * 2 * S + 1),
        ("SEQ(shelf a, !till c, exit e)", "POSSIBLE SKIP TO NEXT", 100 * S + 10 * S + 3 * 2 * S + 1),
        ("SEQ(shelf a, exit e)", "COUNT EVERY 1 s", 103 * S + S),
    ],
)
def test_a_result_waits_for_what_may_still_change_it(pattern, options, due_us):
    """Stamps of up to 2 s, a window of 10 s. The frontier of the slowest stream decides, moved by OFFSET; exits have 1 s."""
    streams = (StreamForm(1000, 2000), StreamForm(1000, 2000), StreamForm(1000, 2000, 1000))
    one = rule(MATCHES, 10_000, 100, 1000, form=Form(streams, pattern=pattern, options=options))
    moved = EXIT._replace(t_min=EXIT.t_min - S, t_max=EXIT.t_max - S)
    counted = "COUNT" in options
    row = Row(() if counted else (SHELF.identity, EXIT.identity), {"t_min": 102 * S, "t_max": 103 * S - 1}, BATCH)
    told = Told([], set(), rows=[row])

    def broken(frontier_us):
        said = {stream.name: frontier_us - stream.offset_us for stream in one.streams}
        return list(broken_waits(one, told, [(BATCH, said)], Landed([SHELF, moved], [])))

    assert broken(due_us) == []
    assert [text.partition(" was told ")[2] for text in broken(due_us - 1)] == (
        ["1 us before it was certain"] if due_us else []
    )


def test_a_match_on_arrival_waits_for_nothing():
    one = rule(MATCHES, 10_000, 100, 1000, form=Form(pattern="SEQ(shelf a, !till c, exit e)", at_once=True))
    row = Row((SHELF.identity, EXIT.identity), {}, BATCH)
    said = dict.fromkeys(("shelf", "till", "exit"), 0)
    assert list(broken_waits(one, Told([], set(), rows=[row]), [(BATCH, said)], Landed([SHELF, EXIT], []))) == []


DOCK, DOOR = landed("dock/tags", 0, 100 * S, 101 * S), landed("door/tags", 1, 102 * S, 103 * S)


@pytest.mark.parametrize(
    ("choice", "of", "waits"),
    [
        ("KEEP ALL a", (DOCK,), True),
        ("ONLY UNMATCHED a", (DOCK,), True),
        ("NEAREST", (DOCK, DOOR), True),
        ("NEAREST KEEP ALL a", (DOCK,), True),
        ("KEEP ALL a", (DOCK, DOOR), False),
        ("", (DOCK, DOOR), False),
    ],
)
def test_a_reading_waits_for_its_best_pairs_or_until_it_can_have_none(choice, of, waits):
    """Stamps of b are up to 2 s long, limits reach 3 s, and times of b are moved by 1 s: later ones may fit till 105 s."""
    form = Form((StreamForm(1000, 2000), StreamForm(1000, 2000, 1000)), (0, 3000), choice)
    one, due_us = rule(PAIRS, 0, 50, 1000, form=form), 101 * S + 3 * S - S + 2 * S + 1
    told = Told([], set(), rows=[Row(tuple(x.identity for x in of), {}, BATCH)])

    def broken(frontier_us):
        return list(broken_waits(one, told, [(BATCH, {"dock": 0, "door": frontier_us})], Landed([DOCK, DOOR], [])))

    assert broken(due_us) == []
    assert bool(broken(due_us - 1)) == waits


def test_a_reading_that_is_too_long_for_any_pair_waits_for_nothing():
    one = rule(PAIRS, 0, 100, 1000, form=Form(between_ms=(0, 500), choice="KEEP ALL a"))
    told = Told([], set(), rows=[Row((DOCK.identity,), {}, BATCH)])
    assert list(broken_waits(one, told, [(BATCH, {"dock": 0, "door": 0})], Landed([DOCK], []))) == []
