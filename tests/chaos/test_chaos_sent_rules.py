"""Rules that gateways are sent over the broker: when they ran, and the births that name their streams."""

from types import SimpleNamespace

from whenabouts_protocol import Birth, encode_birth, topic
from whenabouts_sim.chaos.checks.gateways.births import broken_births
from whenabouts_sim.chaos.checks.gateways.rules_in_force import in_force, names_in_the_end
from whenabouts_sim.chaos.checks.landed import read_landing
from whenabouts_sim.chaos.network.broker_model import Message
from whenabouts_sim.chaos.network.overheard import Arrived
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.job_rules import rules_message
from whenabouts_sim.chaos.parts.rule_form import Near, Sending
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run

NEAR, CLOSE = Near(-1000, 1000, 50), Near(0, 300, 10, "close")
READERS = (("dock", "dock/tags"), ("door", "door/tags"))
SENT = (Sending(0, (NEAR, CLOSE)), Sending(0, (CLOSE,)), Sending(0, None))
PLAN = GatewayPlan("hall", "gw-1", READERS, ClockPlan(), near=NEAR, sent=SENT)


def came(at_us, nears, client="hall/gw-1"):
    payload = b"" if nears is None else rules_message("hall", "gw-1", nears)
    return Arrived(at_us, client, Message(topic("hall", "gw-1", "rules"), payload, 1, True))


def test_the_rules_of_the_file_run_until_others_come_and_again_when_those_are_taken_back():
    heard = [came(10, [NEAR, CLOSE]), came(20, [CLOSE]), came(30, None)]
    assert in_force(PLAN, [[0, 40]], heard) == {NEAR: [[0, 20], [30, 40]], CLOSE: [[10, 30]]}


def test_a_new_start_runs_those_of_the_file_until_it_gets_what_the_broker_retains():
    heard = [came(10, [CLOSE]), came(55, [CLOSE]), came(12, [NEAR], "an ingest")]
    spans = in_force(PLAN, [[0, 40], [50, 90]], heard)
    assert spans == {NEAR: [[0, 10], [50, 55]], CLOSE: [[10, 40], [55, 90]]}
    assert names_in_the_end(spans, 60) == {"$rule/close"}
    assert names_in_the_end(spans, 52) == {"$rule/near"}


def birth(*streams):
    said = Birth("hall", "gw-1", 7, [(one, "tag", None, 0, 0) for one in streams], None, ["gw-1"], "test")
    return Message(topic("hall", "gw-1", "birth"), encode_birth(said), 1, True)


def texts(message, *heard):
    gateway = SimpleNamespace(plan=PLAN, lives=[[0, 1 << 62]], is_next=False)
    retained = {message.topic: message} if message else {}
    return list(broken_births({"hall/gw-1": gateway}, retained, SimpleNamespace(rules=heard), 3_000_000))


def test_a_birth_names_all_streams_of_its_gateway_and_no_others():
    whole = birth("dock/tags", "door/tags", "$rule/near")
    assert texts(whole) == []
    assert texts(birth("dock/tags", "door/tags", "$rule/close"), came(10, [CLOSE])) == []
    assert "expected ['$rule/close', 'dock/tags'" in texts(whole, came(10, [CLOSE]))[0]
    assert "names []" in texts(None)[0]
    assert "cannot be read" in texts(whole._replace(payload=b"?"))[0]


def test_some_schedules_send_rules_and_their_pairs_land(tmp_path):
    """The file of gateways does not name these streams; the ingest takes them because it also received the rules."""
    landed = set()
    for schedule in (one for one in map(draw, range(60)) if one.has_owners and any(x.sent for x in one.gateways)):
        assert run(schedule.only([]), tmp_path).broken == []
        landed = {one.stream for one in read_landing(tmp_path / "cloud" / "landing").readings if one.kind == "measure"}
        if landed > {NEAR.stream}:
            break
    assert CLOSE.stream in landed
