"""Which rules run while their file changes: numbers, what is said of a change, mistakes, and a folder that remembers."""

import json

import click
import pytest

from whenabouts_cloud.cep.shard.events import schema_of
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.frontier.rule import RuleFrontier
from whenabouts_cloud.jobs.output.sink import MARKER, WrongOutputError, claim
from whenabouts_cloud.jobs.rule_follower import RuleFollower, rules_of
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.rules.current import GONE, RunningRules
from whenabouts_cloud.rules.model import Count

STREAMS = 'STREAM a FROM "a" DELAY 1 s\nSTREAM b FROM "b" DELAY 1 s\n'


def rules(*windows, more=""):
    """A text of rules r0, r1 and so on with these windows in seconds; None: there is no such rule."""
    texts = [f"RULE r{n} SEQ(a, b) WITHIN {w} s PER key{more}\n" for n, w in enumerate(windows) if w is not None]
    return STREAMS + "".join(texts)


def parsed(text):
    return parse_rules(text).cep_rules


def test_what_stays_keeps_its_number_and_what_changes_gets_a_new_one():
    """r0 stays, r1 changes, r2 goes, r3 comes."""
    before = RunningRules.of(parsed(rules(1, 2, 3)))
    after = before.changed(parsed(rules(1, 5, None, 4)))
    assert {n: rule.name for n, rule in after.rules.items()} == {0: "r0", 3: "r1", 4: "r3"}
    assert set(after.gone) == {1, 2}
    assert after.difference(before) == "added r3; changed r1; removed r2"
    assert after.difference(after) == "no rule about events changed"
    back = after.changed(parsed(rules(1, 2, 3)))
    assert sorted(back.rules) == [0, 5, 6], "a rule that returns starts again"


def test_a_stream_that_changes_changes_its_rules():
    """The streams that a rule reads are part of it."""
    before = RunningRules.of(parsed(rules(1)))
    after = before.changed(parsed(rules(1).replace('FROM "b"', 'FROM "c"')))
    assert after.difference(before) == "changed r0"


def test_the_newest_that_are_gone_are_known():
    """So many that each shard hears of it; older ones are forgotten by then."""
    running = RunningRules.of(parsed(rules(1)))
    for n in range(GONE + 5):
        running = running.changed(parsed(rules(2 + n % 2)))
    assert len(running.gone) == GONE
    assert max(running.gone) == running.following - 2


def test_they_come_back_from_json():
    """By number; anything else is refused."""
    running = RunningRules.of(parsed(rules(1, 2))).changed(parsed(rules(1)))
    assert RunningRules.of_json(json.loads(json.dumps(running.as_json()))) == running
    with pytest.raises(ValueError, match="expected rules by number"):
        RunningRules.of_json({"texts": {"0": STREAMS}, "following": 1, "gone": []})


class Folder:
    """A rule file and its output folder."""

    def __init__(self, path, text):
        self.file, self.out = path / "rules.wa", path / "out"
        self.write(text)

    def write(self, text):
        self.file.with_suffix(".new").write_text(text, encoding="utf-8")
        self.file.with_suffix(".new").rename(self.file)  # as editors do; a new file, at any time of modification

    def follow(self):
        one = RuleFollower(self.file, self.out, rules_of(self.file), 2)
        one.claim()
        return one


def test_a_changed_file_takes_effect_and_one_with_mistakes_does_not(tmp_path, caplog):
    """Each mistake is logged once; the file may be gone for a moment."""
    caplog.set_level("INFO")
    folder = Folder(tmp_path, rules(1, 2))
    one = folder.follow()
    assert not one.changed()
    folder.write(rules(1, 2).replace("WITHIN 2 s", "WITHIN"))
    assert not one.changed()
    assert not one.changed()
    mistake, kept = caplog.records
    assert (mistake.event, mistake.levelname, mistake.fields) == ("rules.invalid", "ERROR", {"file": folder.file})
    assert "expected `<` or a number" in mistake.getMessage()
    assert (kept.event, kept.getMessage()) == ("rules.kept", "The running rules stay")
    folder.file.unlink()
    assert not one.changed()
    folder.write(rules(1, 3))
    assert one.changed()
    assert sorted(one.adopt().rules) == [0, 2]
    assert not one.changed()
    changed = caplog.records[-1]
    assert (changed.event, changed.getMessage()) == ("rules.changed", f"Rules of {folder.file}: changed r1")
    folder.write(rules(1, more=" COUNT EVERY 1 s"))
    assert not one.changed()
    assert "found rules of another kind" in caplog.records[-2].getMessage()


def test_a_start_goes_on_with_the_rules_that_ran_and_then_changes(tmp_path):
    """An unfinished step is repeated with the rules it began with."""
    folder = Folder(tmp_path, rules(1, 2))
    folder.follow()
    folder.write(rules(1, 3))
    for name in ("offsets", "commits"):
        (folder.out / "_checkpoint" / name).mkdir(parents=True)
    (folder.out / "_checkpoint/offsets/0").touch()
    again = folder.follow()
    assert not again.changed()
    assert again.adopt().rules[1].pattern.window_us == 2_000_000
    (folder.out / "_checkpoint/commits/0").touch()
    assert again.changed()
    assert again.adopt().rules[2].pattern.window_us == 3_000_000
    assert sorted(folder.follow().running.rules) == [0, 2]


def test_another_kind_of_job_keeps_its_folder(tmp_path):
    """A folder of one rule is not one that follows a file, nor the other way round."""
    folder = Folder(tmp_path, rules(1))
    claim(folder.out, rules_of(folder.file)[0], "streaming", 2)
    with pytest.raises(WrongOutputError, match="found results of mode 'streaming'"):
        folder.follow()
    (folder.out / MARKER).unlink()
    folder.follow()
    with pytest.raises(WrongOutputError, match="found results of mode 'following, matches'"):
        claim(folder.out, rules_of(folder.file)[0], "streaming", 2)


def test_counts_and_matches_do_not_run_together(tmp_path):
    """They are written to separate files."""
    folder = Folder(tmp_path, rules(1) + "RULE c SEQ(a, b) WITHIN 1 s PER key COUNT EVERY 1 s")
    with pytest.raises(click.UsageError, match="found r0, c, expected one kind"):
        rules_of(folder.file)


def test_the_frontier_of_a_rule_is_the_least_of_its_streams_each_moved():
    """b is 10 s ahead of a and moved back by 30 s; a watermark counts from the next step on, after a restart too."""
    [rule] = parsed(rules(1).replace('FROM "b" DELAY 1 s', 'FROM "b" DELAY 1 s OFFSET -30 s'))
    none, frontier = schema_of(rule.plan()).empty_table(), RuleFrontier(rule)
    frontier.note_watermarks(none, [[Watermark("hall/g", 100_000_000)], [Watermark("hall/g", 110_000_000)]])
    assert frontier.value_us is None
    again = RuleFrontier(rule)
    again.restore(frontier.snapshot())
    again.note_watermarks(none, [[], []])
    assert again.value_us == 80_000_000
    assert again.state() == {
        "frontier_us": 80_000_000, "streams_us": {"a": 100_000_000, "b": 110_000_000}, "silent": [], "unheard": [],
    }  # fmt: skip


def test_what_is_counted_is_its_words():
    """In capitals, as it is written (whenabouts_cloud.rules.counts reads it)."""
    count = Count((("sum", "a", "value"), ("avg", "b", "attrs.rssi")), 1_000_000)
    [rule] = parsed(rules(1, more=" COUNT, SUM(a.value), AVG(b.attrs.rssi) EVERY 1 s"))
    assert rule.count == count
    assert count.text() == "COUNT, SUM(a.value), AVG(b.attrs.rssi) EVERY 1000000 us"
