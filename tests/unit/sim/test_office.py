"""The simulated office and the posts of the demonstration: what truly was, how runs are judged, the virtual office."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from click.testing import CliRunner

from whenabouts_cloud.rules import parse_rules
from whenabouts_edge.config.load import parse
from whenabouts_sim.cli import main
from whenabouts_sim.demo.demo import DURATION_S
from whenabouts_sim.demo.office import names, office_table, run_office
from whenabouts_sim.demo.office_run import POSTS as OFFICE_POSTS
from whenabouts_sim.demo.office_run import RULE, office_world
from whenabouts_sim.demo.rules import GROUP, POSTS, STAFF_RULE
from whenabouts_sim.judge.judgement import together_lines
from whenabouts_sim.judge.presence_overlap import FalseStretch, LandedState, summarise_together
from whenabouts_sim.judge.truth import PairScore
from whenabouts_sim.stack.texts import verdict_text
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.posts import (
    LEAVE_US,
    MEETS_US,
    MISSES_US,
    Post,
    Presence,
    together,
    true_presences,
    with_posts,
)
from whenabouts_sim.world.world import RDM_REPEAT_US, SECOND_US, SimReader, World

A = Post("a", SimReader("a-1", "here", "gate-a", "a/badges", "rdm6300"), "0A00000001")
B = Post("b", SimReader("b-1", "there", "gate-b", "b/badges", "rdm6300"), "0A00000002")


def lying(post, *stretches):
    """Reads of its badge every 100 ms in stretches given in tenths of a second, the last one at their end."""
    moments = [t * 100_000 for first, last in stretches for t in range(first, last + 1)]
    return [EmittedFrame(post.reader.name, n, post.key, t, t + 1000) for n, t in enumerate(moments)]


def states(post, *changes, off=0, bound=0, delay=1000):
    """State readings at changes given in tenths of a second, on and off in turn; a clock that is off, and its bound."""
    moments = [t * 100_000 + off for t in changes]
    rows = [LandedState(post.reader.gateway, 1, 0, 0, 0, 0, None)]
    for n, t in enumerate(moments):
        rows.append(
            LandedState(post.reader.gateway, 1, n + 1, t - bound, t + bound, t + delay - off, present=n % 2 == 0)
        )
    return rows


def reported(*numbers):
    """A verdict by the numbers of the state readings of A and B."""
    return tuple((post.reader.gateway, 1, number) for post, number in zip((A, B), numbers, strict=True))


def test_a_badge_is_present_until_a_second_after_its_last_read():
    """Tenths:  10..20   32..40    a pause of 1.2 s ends a presence, one of a second does not."""
    reads = [*lying(A, (10, 20), (32, 40)), *lying(B, (0, 5), (15, 20))]
    assert true_presences(A, reads) == [Presence(1_000_000, 3_000_000), Presence(3_200_000, 5_000_000)]
    assert true_presences(B, reads) == [Presence(0, 3_000_000)]
    assert true_presences(A, []) == []


def test_stretches_are_choices_that_overlap_for_more_than_an_instant():
    """a  [10   20)      [30  40)
    b        [18     30)   [32  50)
    """
    a, b = [Presence(10, 20), Presence(30, 40)], [Presence(18, 30), Presence(32, 50)]
    assert together([a, b]) == {(0, 0): Presence(18, 20), (1, 1): Presence(32, 40)}
    assert together([a, b, [Presence(0, 33)]]) == {(0, 0, 0): Presence(18, 20), (1, 1, 0): Presence(32, 33)}
    assert together([a, []]) == {}


@pytest.mark.parametrize(("posts", "duration_s"), [(POSTS, DURATION_S), (OFFICE_POSTS, 45)])
@pytest.mark.parametrize("seed", range(8))
def test_posts_meet_and_miss_each_other_in_turn(posts, duration_s, seed):
    """All at once for a while, or the last comes just after the first has gone; the presences of a post lie well apart."""
    world = with_posts(World(seed, EPOCH_US, duration_s * SECOND_US, 0, (), {}, ()), posts)
    assert set(world.clocks) == {post.reader.gateway for post in posts}
    assert world == with_posts(World(seed, EPOCH_US, duration_s * SECOND_US, 0, (), {}, ()), posts)
    reads = [EmittedFrame(s.reader, s.number, s.key, s.true_us, s.true_us) for s in world.sightings]
    presences = [true_presences(post, reads) for post in posts]
    counts = {len(of_post) for of_post in presences}
    assert len(counts) == 1
    assert counts.pop() >= 4
    meetings = together(presences)
    for n in range(len(presences[0])):
        cycle = [of_post[n] for of_post in presences]
        gap = max(one.begin_us for one in cycle) - min(one.end_us for one in cycle)
        if n % 2 == 0:
            assert (n,) * len(posts) in meetings
            assert -gap >= MEETS_US[0] - RDM_REPEAT_US
        else:
            assert MISSES_US[0] <= gap <= MISSES_US[1]
    assert len(meetings) == (len(presences[0]) + 1) // 2
    for of_post in presences:
        assert all(b.begin_us - a.end_us > LEAVE_US for a, b in pairwise(of_post))
    assert max(one.end_us for of_post in presences for one in of_post) <= EPOCH_US + duration_s * SECOND_US


def test_a_world_without_time_for_all_cycles_is_refused():
    """Ten seconds hold a meeting and a miss."""
    with pytest.raises(ValueError, match="room for 2 cycles at the posts, expected 4"):
        with_posts(World(1, EPOCH_US, 10 * SECOND_US, 0, (), {}, ()), POSTS)


def test_a_run_is_judged_by_what_truly_was():
    """Tenths; the clock of b is 0.3 s late, so stamps show a second stretch, of 0.2 s, that never happened.

    a   [10       50)         [100      140)
    b          [49   80)                  [141  170)       as stamped: [46  77)  [138  167)
    """
    reads = [*lying(A, (10, 40), (100, 130)), *lying(B, (49, 70), (141, 160))]
    landed = [*states(A, 10, 50, 100, 140), *states(B, 49, 80, 141, 170, off=-300_000, bound=400_000)]
    summary = summarise_together((A, B), reads, [*landed, landed[1]], [reported(1, 1)])
    assert (summary.states, summary.true_stretches, summary.violations, summary.repeated) == (10, 1, 0, 0)
    assert summary.job == PairScore(1, 0, 0)
    assert summary.by_stamp == PairScore(1, 1, 0)
    assert summary.by_arrival == PairScore(1, 0, 0)
    assert summary.misjudged == (FalseStretch(13_800_000, 200_000, 100_000),)
    assert summary.sound
    text = "\n".join(together_lines("both", summary))
    assert "plain timestamps show all at once for 0.20 s. That never happened: one had left 100 ms before" in text
    assert "DEFINITELY gave 0 that never happened." in text


def test_what_the_job_emits_wrongly_twice_or_not_at_all_is_seen():
    """One that never happened, one twice, and one that is certain by the stamps and was not emitted."""
    reads = [*lying(A, (10, 40), (100, 130)), *lying(B, (20, 40), (141, 160))]
    landed = [*states(A, 10, 50, 100, 140), *states(B, 20, 50, 141, 170)]
    false = summarise_together((A, B), reads, landed, [reported(1, 1), reported(3, 3)])
    assert (false.job, false.absent, false.sound) == (PairScore(1, 1, 0), 0, False)
    twice = summarise_together((A, B), reads, landed, [reported(1, 1), reported(1, 1)])
    assert (twice.job, twice.repeated, twice.sound) == (PairScore(1, 0, 0), 1, False)
    silent = summarise_together((A, B), reads, landed, [])
    assert (silent.job, silent.absent, silent.sound) == (PairScore(0, 0, 1), 1, False)
    assert not silent.misjudged
    assert "Plain timestamps gave no wrong result" in "\n".join(together_lines("both", silent))


def test_a_stretch_that_stamps_leave_open_need_not_be_emitted():
    """The overlap of 0.1 s is shorter than the stamps; nor is the end known of a presence that is still on."""
    reads = [*lying(A, (10, 40)), *lying(B, (49, 70))]
    unsure = [*states(A, 10, 50, bound=200_000), *states(B, 49, 80, bound=200_000)]
    summary = summarise_together((A, B), reads, unsure, [])
    assert (summary.true_stretches, summary.absent, summary.job.missed, summary.sound) == (1, 0, 1, True)
    still_on = [*states(A, 10), *states(B, 49, 80)]
    assert summarise_together((A, B), reads, still_on, []).absent == 0


def test_a_stamp_without_the_true_begin_is_a_violation():
    """A clock whose claimed bound is below its error; the job's verdict on it counts as false."""
    reads = [*lying(A, (10, 40)), *lying(B, (20, 40))]
    landed = [*states(A, 10, 50), *states(B, 20, 50, off=300_000, bound=100_000)]
    summary = summarise_together((A, B), reads, landed, [reported(1, 1)])
    assert (summary.violations, summary.job, summary.sound) == (1, PairScore(0, 1, 1), False)


@pytest.mark.parametrize(("rule", "group", "posts"), [(STAFF_RULE, GROUP, POSTS), (RULE, "office", OFFICE_POSTS)])
def test_the_rules_and_the_agents_configuration_fit_each_other(rule, group, posts):
    """Each post is a process of the rule by the stream of its gateway's states, and its agent a member of the group."""
    [latwin_rule] = parse_rules(rule).latwin_rules
    assert (latwin_rule.modality, latwin_rule.by_runs, latwin_rule.group) == ("definitely", True, group)
    assert [stream.site for stream in latwin_rule.streams] == [post.reader.site for post in posts]
    for post, stream in zip(posts, latwin_rule.streams, strict=True):
        config = parse(
            f'site = "{post.reader.site}"\ngateway = "{post.reader.gateway}"\nstate_dir = "x"\n'
            f'[broker]\nhost = "127.0.0.1"\n[clock]\nsource = "chrony"\n'
            f'[[reader]]\nname = "r"\nkind = "rdm6300"\nport = "/dev/null"\nstream = "{post.reader.stream}"\n'
            + post.configuration(group, posts)
        )
        assert config.group.stream == stream.pattern == f"{post.name}/state"
        others = {(other.reader.site, other.reader.gateway) for other in posts if other is not post}
        assert set(config.group.peers) == others
        [state] = config.group.states
        assert (state.name, state.key, state.leave_ms) == ("present", post.key, LEAVE_US // 1000)


def test_the_virtual_office_is_judged_by_true_time():
    """No verdict is false, few stretches are missed; timestamps that are wrong by minutes err often."""
    exact = run_office(4, processes=3, hours=30, clock_error_s=0.01)
    assert exact.sound
    assert exact.true_stretches > 80
    assert exact.definitely.true_reported >= 0.98 * exact.true_stretches
    assert exact.states > 100
    assert exact.reports > 100
    wrong = run_office(4, processes=3, hours=30, clock_error_s=120)
    assert wrong.sound
    assert wrong.true_stretches == exact.true_stretches
    assert wrong.by_stamp.false > 0
    assert wrong.by_stamp.missed > 0
    assert exact.by_stamp.false <= wrong.by_stamp.false
    assert 0 < exact.wait_s_median <= exact.wait_s_p99
    assert "plain timestamps" in office_table(wrong)


def test_things_that_are_watched_have_names():
    """Two are the speaker and the projector, the others phones."""
    assert names(3) == ("phone", "speaker", "projector")
    assert names(4) == ("phone-1", "phone-2", "speaker", "projector")


def test_the_command_judges_virtual_hours():
    """As a table or as JSON; its exit code is about soundness."""
    result = CliRunner().invoke(
        main, ["office", "--virtual", "--seed", "3", "--hours", "10", "--phones", "2", "--json"]
    )
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["watched"] == ["phone-1", "phone-2", "speaker", "projector"]
    assert summary["definitely"]["false"] == 0
    assert summary == json.loads(json.dumps(run_office(3, 4, 10, 5.0).as_dict()))
    result = CliRunner().invoke(main, ["office", "--virtual", "--seed", "3", "--hours", "10"])
    assert "DEFINITELY was wrong 0 times" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--virtual", "--speed", "2"], "--speed: belongs to a run without --virtual"),
        (["--virtual", "--keep", "x"], "--keep: belongs to a run without --virtual"),
        (["--clock-error", "2"], "--clock-error: belongs to a run with --virtual"),
        (["--hours", "2"], "--hours: belongs to a run with --virtual"),
    ],
)
def test_options_of_the_other_kind_of_run_are_refused(arguments, text):
    """No given option is silently ignored."""
    result = CliRunner().invoke(main, ["office", *arguments])
    assert result.exit_code == 2
    assert text in result.stderr


def test_a_verdict_is_shown_in_one_line():
    """The states that held, each with the stamp of its beginning."""
    state = {"name": "guard", "t_min": EPOCH_US, "t_max": EPOCH_US + 250_999}
    text = verdict_text({"verdict": "definitely", "rule": "staffed", "states": [state]})
    assert text == "definitely staffed: guard since [13:59:57.000, 13:59:57.250]"


def test_posts_of_the_office_have_separate_gateways():
    """Three gateways, wrong clocks, a world that a seed makes again."""
    world = office_world(5)
    assert world == office_world(5)
    assert replace(world, sightings=()) != replace(office_world(6), sightings=())
    assert {reader.gateway for reader in world.readers} == {"phone", "rfid", "projector"}
