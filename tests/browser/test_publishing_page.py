"""Publishing rules from the page: a real broker keeps what the gateways must run, after the visitor has agreed."""

import pytest

from support.browser.look import LIMIT_MS, opened
from support.browser.served import served
from support.cloud.landing import EPOCH_US, land, reading
from support.edge.agent import witness
from whenabouts_protocol import Birth, encode_birth, topic
from whenabouts_protocol.messages.compiled_rule import decode_rules
from whenabouts_sim.stack.broker import RunningBroker

SITE, GATEWAY, SECOND_US = "hall", "gw-1", 1_000_000
RULES = """\
STREAM dock FROM "dock/tags" DELAY 5 s
STREAM gate FROM "gate/tags" DELAY 5 s

RULE near
  CORRELATE dock AS a, gate AS b
  WHERE |@a - @b| <= 1 s OVER 60 %
"""
WAIT_S = 30


@pytest.fixture
def broker(tmp_path):
    """A broker that keeps the birth of a gateway with both readers, and who watches it."""
    running = RunningBroker(tmp_path / "broker")
    running.start()
    streams = [
        (name, "tag", None, 2 * SECOND_US, SECOND_US, 30_000, 1_000, 12_000, 2_000)
        for name in ("dock/tags", "gate/tags")
    ]
    with witness(running.port) as watching:
        payload = encode_birth(Birth(SITE, GATEWAY, 1, streams, build="1.0"))
        watching.client.publish(topic(SITE, GATEWAY, "birth"), payload, qos=1, retain=True).wait_for_publish(WAIT_S)
        yield watching
    running.stop()


def sent(broker):
    """The streams that the rules in each message to the gateway derive."""
    return [
        [rule.derived for rule in decode_rules(payload)[2]] for leaf, payload, _ in list(broker.seen) if leaf == "rules"
    ]


def test_rules_are_published_after_the_visitor_has_seen_where_they_go_and_agreed(page, broker, tmp_path):
    """The first button only asks for the plan; the text of the editor is sent, not that of the file."""
    page.watched.server_may_end = True  # it does at the end, before the page
    land(tmp_path / "landing", [reading(GATEWAY, 1, "dock/tags", "k", EPOCH_US, EPOCH_US, site=SITE)])
    rule = tmp_path / "rules.wa"
    rule.write_text(RULES)
    options = ("--broker", f"127.0.0.1:{broker.port}", "--allow-publish")
    with served(tmp_path / "landing", tmp_path, *options, rule=rule) as dashboard:
        section = opened(page, dashboard.url, "rules")
        editor = section.locator("textarea")
        editor.wait_for(timeout=LIMIT_MS)
        editor.fill(RULES.replace("RULE near", "RULE nearer"))
        section.get_by_role("button", name="Publish to the gateways").click(timeout=LIMIT_MS)
        section.get_by_text("To 1 gateway. nearer: edge (hall/gw-1)").wait_for(timeout=LIMIT_MS)
        assert sent(broker) == []
        editor.press_sequentially(" ")
        assert section.get_by_role("button", name="Publish now").count() == 0, "the plan of another text is shown"
        section.get_by_role("button", name="Publish to the gateways").click(timeout=LIMIT_MS)
        section.get_by_role("button", name="Publish now").click(timeout=LIMIT_MS)
        section.get_by_text("Published to 1 gateway.").wait_for(timeout=LIMIT_MS)
        broker.wait("rules at the broker", lambda: sent(broker), WAIT_S)
    assert sent(broker) == [["$rule/nearer"]]
    assert rule.read_text() == RULES


def test_a_broker_that_has_gone_is_told_and_nothing_is_lost(page, tmp_path):
    """The text of the editor stays, to be published again."""
    page.watched.server_may_end = page.watched.server_may_refuse = True
    land(tmp_path / "landing", [reading(GATEWAY, 1, "dock/tags", "k", EPOCH_US, EPOCH_US, site=SITE)])
    rule = tmp_path / "rules.wa"
    rule.write_text(RULES)
    with served(tmp_path / "landing", tmp_path, "--broker", "127.0.0.1:1", "--allow-publish", rule=rule) as dashboard:
        section = opened(page, dashboard.url, "rules")
        section.get_by_role("button", name="Publish to the gateways").click(timeout=LIMIT_MS)
        section.get_by_text("broker 127.0.0.1:1: cannot connect").wait_for(timeout=LIMIT_MS)
        assert section.locator("textarea").input_value() == RULES
