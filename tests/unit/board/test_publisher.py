"""A board and its broker: messages and when they go again, acknowledgements, lost lines."""

from hypothesis import given
from hypothesis import strategies as st

from support.board.config import config
from support.board.flash import CutFlash
from whenabouts_edge.board.agent import Agent
from whenabouts_edge.board.config import checked
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_edge.board.mqtt import Mqtt
from whenabouts_edge.board.publisher import RESEND_US_MAX, WINDOW, Publisher
from whenabouts_protocol import Ack, encode_ack

S = 1_000_000


def online():
    """A client that is connected."""
    mqtt = Mqtt("gw", 0)
    mqtt.begin(0)
    mqtt.feed(b"\x20\x02\x00\x00", 0)
    return mqtt


def test_messages_go_in_order_a_few_at_a_time_and_again_when_they_do_not_land():
    """
    sent 0 1 2 3   taken   4 5 taken   silence of the cloud: 2 s  all again   4 s  all again   landed: 2 s again
    """
    flash_log, mqtt = FlashLog(CutFlash(), 2, 4096, 0), online()
    for n in range(6):
        flash_log.append(1, bytes([n]))
    publisher = Publisher(flash_log, 2 * S)
    times = []

    def step(now):
        before = mqtt.in_flight
        publisher.step(mqtt, "t", now)
        return mqtt.in_flight - before

    assert step(0) == WINDOW
    assert step(0) == 0
    assert not publisher.is_published(flash_log.end)
    for packet_id in (2, 1, 3, 4):
        publisher.taken(packet_id)
        mqtt.feed(b"\x40\x02" + packet_id.to_bytes(2, "big"), 0)
    assert step(0) == 2
    for packet_id in (5, 6):
        publisher.taken(packet_id)
        mqtt.feed(b"\x40\x02" + packet_id.to_bytes(2, "big"), 0)
    assert publisher.is_published(flash_log.end)
    assert [packet[-1] for packet in mqtt._out[1:]] == [0, 1, 2, 3, 4, 5]
    now, next_id = 0, 7
    while len(times) < 3:
        now += S
        while count := step(now):
            times += [now] if now not in times else []
            for _ in range(count):
                publisher.taken(next_id)
                mqtt.feed(b"\x40\x02" + next_id.to_bytes(2, "big"), now)
                next_id += 1
    assert [t // S for t in times] == [2, 6, 14]
    assert publisher.resends == 3
    flash_log.landed(flash_log.boot, flash_log.next_seq - 1)
    publisher.landed(now)
    assert step(now + RESEND_US_MAX) == 0
    assert publisher.is_published(flash_log.end)


def test_no_more_is_read_than_the_line_takes():
    """Messages of 1.5 kB: one waits at a slow line, the next one is read when that was taken."""
    flash_log, mqtt = FlashLog(CutFlash(), 2, 16384, 0), online()
    for n in range(4):
        flash_log.append(1, bytes([n]) * 1500)
    publisher = Publisher(flash_log, 2 * S)
    mqtt.wrote(len(mqtt.to_write()), 0)
    publisher.step(mqtt, "t", 0)
    assert (mqtt.in_flight, len(mqtt._out)) == (1, 1)
    publisher.step(mqtt, "t", 0)
    assert mqtt.in_flight == 1
    mqtt.wrote(len(mqtt.to_write()), 0)
    publisher.step(mqtt, "t", 0)
    assert mqtt.in_flight == 2


def test_acknowledgements_of_others_and_of_numbers_never_sent_are_refused():
    """They delete nothing; of an earlier boot as much goes as was sent again."""
    flash = CutFlash()
    FlashLog(flash, 2, 4096, 0).append(2, b"before")
    flash_log = FlashLog(flash, 2, 4096, 0)
    [before] = flash_log.numbers().keys() - {flash_log.boot}
    agent = Agent(checked(config()), flash_log, 0)
    flash_log.append(3, b"x")
    agent._acknowledged(b"no ack", 0)
    agent._acknowledged(encode_ack(Ack("a", "c", {flash_log.boot: 2})), 0)
    agent._acknowledged(encode_ack(Ack("a", "b", {flash_log.boot: 2})), 0)
    agent._acknowledged(encode_ack(Ack("a", "b", {before: 1})), 0)
    assert (agent.acks_refused, flash_log.readings) == (3, 5)
    agent.publisher.step(online(), "t", 0)
    agent._acknowledged(encode_ack(Ack("a", "b", {flash_log.boot: 3})), 0)
    assert (agent.acks_refused, flash_log.readings) == (4, 5)
    agent._acknowledged(encode_ack(Ack("a", "b", {flash_log.boot + 5: 2, before: 9, flash_log.boot: 1})), 0)
    assert (agent.acks_refused, flash_log.readings) == (4, 3)
    agent._acknowledged(encode_ack(Ack("a", "b", {flash_log.boot: 2})), 0)
    assert (agent.acks_refused, flash_log.readings) == (4, 0)


def test_a_board_is_known_by_site_and_name_and_tells_that_another_client_is_too():
    """Three connections that end within seconds, one after the other."""
    agent = Agent(checked(config()), FlashLog(CutFlash(), 2, 4096, 0), 0)
    for _ in range(3):
        assert "another client" not in agent.problem
        agent.begin(0)
        assert b"\x00\x03a/b" in agent.mqtt.to_write()
        agent.heard(b"\x20\x02\x00\x00", 0)
        agent.lost("closed", S)
    assert agent.problem == "closed; another client uses this name"


@given(st.lists(st.binary(max_size=20), max_size=8), st.booleans())
def test_a_broker_that_sends_anything_does_no_harm(pieces, welcome):
    """Right behind its welcome or at once: the line ends with a reason, or goes on."""
    agent = Agent(checked(config()), FlashLog(CutFlash(), 2, 4096, 0), 0)
    agent.begin(0)
    agent.heard(b"".join([b"\x20\x02\x00\x00" * welcome, *pieces[:1]]), 1)
    for n, piece in enumerate(pieces[1:]):
        agent.heard(piece, n)
        agent.step(n * S)
    agent.step(100 * S)
    assert (agent.mqtt is None) == bool(agent.problem)


def test_reconnects_come_later_and_later():
    """Half a second, doubled up to thirty; less a part that differs from board to board."""
    pauses = []
    for bits in (0, 255):
        agent = Agent(checked(config()), FlashLog(CutFlash(), 2, 4096, bits), 0)
        now, times = 0, []
        for _ in range(9):
            assert agent.wants_line(now)
            agent.lost("nobody", now)
            began = now
            while not agent.wants_line(now):
                now += 100_000
            times.append((now - began) // 100_000)
        pauses.append(times)
    assert pauses[0] == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert all(b <= a // 2 + 1 for a, b in zip(*pauses, strict=True))
