"""A reader's thread at an LLRP reader by an emulator that nobody here wrote: the true time is in every stamp, whatever the
reader's clock and the network do."""

import logging
import socket
import statistics
import threading
import time

import pytest
from llrpkit.protocol import BitStr, messages, params

from support.edge.llrp import Cable, Portal, Reading, now_us, running
from whenabouts_edge.readers.port import PortError
from whenabouts_edge.readers.session import ReaderSession
from whenabouts_edge.readers.tcp import TcpDevice, open_tcp
from whenabouts_hardware import READERS
from whenabouts_hardware.network import llrp_dialogue

SETUP = [
    "GET_READER_CAPABILITIES", "SET_READER_CONFIG", "ENABLE_EVENTS_AND_REPORTS", "DELETE_ROSPEC", "ADD_ROSPEC",
    "ENABLE_ROSPEC", "START_ROSPEC",
]  # fmt: skip


@pytest.fixture
def quick(monkeypatch):
    """A dead connection is noticed after a second."""
    monkeypatch.setattr(llrp_dialogue, "ANSWER_US", 1_000_000)


@pytest.fixture
def patient(monkeypatch):
    """A connection is dead after half a minute: on a busy machine the emulator, too, may not answer for some seconds."""
    monkeypatch.setattr(llrp_dialogue, "ANSWER_US", 30_000_000)


def true_in_all(portal, readings):
    """Every reading's window holds the moment at which the reader saw its tag, on its antenna."""
    for one in readings:
        true_us, antenna = portal.seen[one.key]
        assert one.earliest_us <= true_us <= one.latest_us, (one.key, true_us - one.earliest_us, one.width_us)
        assert one.attrs["antenna"] == antenna
        assert -60 < one.attrs["rssi"] < -40
    return True


def behind_no_clear_moment(reading):
    """No reading begins before a moment that was clear already, less the reach of its reader."""
    clear_us = 0
    for batch in reading.batches:
        assert all(one.earliest_us >= clear_us - reading.thread.reach_us for one in batch.readings)
        assert batch.looked_us <= batch.clear_us
        clear_us = max(clear_us, batch.clear_us)


def test_an_inventory_from_the_greeting_to_an_orderly_end():
    """
    agent   connects, sets up, starts | probes, answers keep-alives | stops the ROSpec, closes
    reader                            | reports from its antennas   |
    """
    portal = Portal()
    with running(portal) as do, Reading(portal.port) as reading:
        reading.wait("readings", lambda: len(reading.readings) > 50)
        do(portal.send_keepalive())
        do(portal.wait_keepalive_ack())
        reading.wait("more", lambda: {one.attrs["antenna"] for one in reading.readings} == {1, 2})
        reading.thread.stop()
        reading.thread.join(5)
        assert portal._rospecs == {}
    assert portal.heard[: len(SETUP)] == SETUP
    assert portal.heard[-3:] == ["STOP_ROSPEC", "DELETE_ROSPEC", "CLOSE_CONNECTION"]
    assert true_in_all(portal, reading.readings)
    assert len({one.key for one in reading.readings}) == len(reading.readings) == len(portal.seen)
    behind_no_clear_moment(reading)
    assert reading.batches[0].since_us == reading.batches[0].clear_us  # not known to scan yet
    assert reading.batches[-1].since_us < reading.batches[-1].clear_us
    assert reading.thread.reader_state.counters["noise_bytes"] == 0


def test_antennas_power_and_inventory_are_those_of_the_configuration():
    """The reader gets the level of its own table that is next below, and reads with one antenna."""
    portal = Portal()
    more = "antennas = [2]\npower_cdbm = 2449\nrf_mode = 2\nsession = 2\npopulation = 100\n"
    with running(portal), Reading(portal.port, more) as reading:
        reading.wait("readings", lambda: len(reading.readings) > 5)
        [(spec, state)] = portal._rospecs.values()
    assert state == "Active"
    [inventory] = spec.spec_parameters
    assert inventory.antenna_ids == [2]
    [antenna] = inventory.inventory_parameter_specs[0].antenna_configurations
    assert antenna.rf_transmitter.transmit_power == 15  # index 15 of the emulator's table is 24.00 dBm
    assert antenna.rf_transmitter.hop_table_id == 1
    [command] = antenna.air_protocol_inventory_command_settings
    assert command.c1_g2_rf_control.mode_index == 2
    assert (command.c1_g2_singulation_control.session, command.c1_g2_singulation_control.tag_population) == (2, 100)
    assert {one.attrs["antenna"] for one in reading.readings} == {2}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("antennas = [1, 5]\n", "antennas: found 5, expected 1 to 2, as many as the reader has"),
        ("power_cdbm = 900\n", "power_cdbm: found 900, expected at least the reader's lowest level, 1000"),
    ],
)
def test_a_configuration_that_the_reader_cannot_follow_is_said_in_words(more, said):
    """What was found, and what the reader has."""
    portal = Portal()
    with running(portal), Reading(portal.port, more) as reading:
        reading.wait("said", lambda: said in reading.thread.reader_state.problem)
    assert reading.readings == []


@pytest.mark.parametrize(
    "error_us", [300_000, -300_000, 5_000_000, -86_400_000_000, None], ids=["+0.3s", "-0.3s", "+5s", "-1day", "2000"]
)
def test_a_clock_that_jumps_moves_no_stamp(error_us):
    """Forward, back, to 1 January 2000: no bound comes from a clock that nobody can ask."""
    portal = Portal()
    with running(portal), Reading(portal.port) as reading:
        reading.wait("before", lambda: len(reading.readings) > 20)
        portal.error_us = 946_684_800_000_000 - 1_795_000_000_000_000 if error_us is None else error_us
        count = len(reading.readings)
        reading.wait("after", lambda: len(reading.readings) > count + 60)
        seen = portal.error_us not in (300_000, -300_000)  # a step within the bounds shows nowhere
        assert reading.thread.reader_state.counters["clock_steps"] in ((1,) if seen else (0, 1))
    assert true_in_all(portal, reading.readings)
    assert max(one.width_us for one in reading.readings) < 1_500_000


def ahead_us(portal):
    """How far the emulator's clock is ahead of the host's, in which stamps count here."""
    return time.time_ns() // 1000 + portal.error_us - now_us()


def test_a_clock_that_nothing_steps_makes_stamps_narrower_if_the_operator_says_so():
    """Its error is measured to a part of a stamp, and the status tells it."""
    portal = Portal()
    portal.error_us = -86_400_000_000
    with running(portal), Reading(portal.port, "latency_us = 20000\nclock_ppm = 200\n") as reading:
        reading.wait("readings", lambda: len(reading.readings) > 300)
        said = reading.thread.reader_state.status()
    error_us, bound_us = said["clock_error_us"], said["clock_bound_us"]
    assert abs(error_us - ahead_us(portal)) <= bound_us < 60_000
    widths = []
    for one in reading.readings:
        t_min, t_max, _ = one.stamp
        assert t_min <= portal.seen[one.key][0] <= t_max
        widths.append(t_max - t_min)
    assert max(widths[200:]) < statistics.median(one.width_us for one in reading.readings)


def test_a_network_that_stalls_makes_stamps_wide_and_keeps_them_true():
    """
    cable     ====|.......1.2 s.......|====
    reports       held                 all at once, each true; the clear moment waited for them
    """
    portal = Portal()
    cable = Cable(portal)
    with running(portal, cable), Reading(cable.port) as reading:
        reading.wait("before", lambda: len(reading.readings) > 20)
        cable.frozen = True
        frozen_us = now_us()
        reading.wait("a while", lambda: now_us() > frozen_us + 1_200_000)
        cable.frozen = False
        thawed_us = now_us()
        reading.wait("after", lambda: any(portal.seen[one.key][0] > thawed_us for one in reading.readings))
        assert reading.thread.reader_state.opened == 1
    assert true_in_all(portal, reading.readings)
    held = [one for one in reading.readings if frozen_us < portal.seen[one.key][0] < thawed_us]
    assert len(held) > 100
    assert max(one.width_us for one in held) > 1_200_000
    behind_no_clear_moment(reading)


def test_a_slow_network_is_measured():
    """A tenth of a second each way is in the stamps without any setting."""
    portal = Portal()
    cable = Cable(portal)
    cable.delay_s = 0.1
    with running(portal, cable), Reading(cable.port) as reading:
        reading.wait("readings", lambda: len(reading.readings) > 100)
    assert true_in_all(portal, reading.readings)


def test_a_pulled_cable_is_noticed_and_the_reader_read_again(quick):
    """
    cable     ====|pulled, no FIN ...        ====
    agent         no answer for a second     opens again, is refused while the reader holds the old connection, reads
    """
    portal = Portal()
    cable = Cable(portal)
    with running(portal, cable) as do, Reading(cable.port) as reading:
        state = reading.thread.reader_state
        reading.wait("before", lambda: len(reading.readings) > 20)
        cable.frozen = True
        reading.wait("noticed", lambda: "found no answer for 1000 ms" in state.problem)
        lost_us = now_us()
        before = cable.connections
        cable.frozen = False
        do(cable.forget())
        reading.wait("again", lambda: any(portal.seen[one.key][0] > lost_us for one in reading.readings))
        assert cable.connections > before
        assert state.state == "reading"
    assert true_in_all(portal, reading.readings)
    behind_no_clear_moment(reading)


def test_a_reader_that_another_client_holds_is_read_once_it_is_free():
    """The problem names the other client."""
    portal = Portal()
    with running(portal), Reading(portal.port) as first:
        first.wait("first", lambda: len(first.readings) > 5)
        with Reading(portal.port) as second:
            second.wait("refused", lambda: "another client holds the reader" in second.thread.reader_state.problem)
            first.thread.stop()
            second.wait("second", lambda: len(second.readings) > 5)
    assert true_in_all(portal, first.readings + second.readings)


@pytest.mark.parametrize("cut_after", [0, 1, 5, 9, 10, 40, 200])
def test_a_connection_that_breaks_within_a_message_costs_that_message_alone(cut_after):
    """RST behind any number of bytes; the next connection begins anew."""
    portal = Portal()
    cable = Cable(portal)
    with running(portal, cable), Reading(cable.port) as reading:
        reading.wait("before", lambda: len(reading.readings) > 20)
        cable.cut_after = cut_after
        reading.wait("lost", lambda: reading.thread.reader_state.opened > 1)
        count = len(reading.readings)
        reading.wait("again", lambda: len(reading.readings) > count + 20)
        assert reading.thread.reader_state.counters["noise_bytes"] == 0
    assert true_in_all(portal, reading.readings)


def test_reports_of_an_earlier_connection_are_left_out():
    """A reader delivers what it kept for a client that vanished: nothing bounds its time, so it is counted."""
    portal = Portal()
    cable = Cable(portal)
    with running(portal, cable) as do, Reading(cable.port) as reading:
        reading.wait("before", lambda: len(reading.readings) > 20)
        cable.injected = b"".join(portal.bytes_sent)
        do(cable.reset())
        reading.wait("again", lambda: reading.thread.reader_state.counters.get("stale") == 10)
        count = len(reading.readings)
        reading.wait("more", lambda: len(reading.readings) > count + 20)
    assert true_in_all(portal, reading.readings)


def test_an_odd_tag_costs_no_other_of_its_report():
    """
    report   |an earlier ROSpec's|own|an EPC of 0 bits|own|
    """
    session = ReaderSession({"kind": "llrp", "stream": "dock/tags"}, 0, READERS["llrp"])
    session.dialogue.due(1_000_000)
    own = session.dialogue._rospec
    sent = [(own + 1, b"\x01"), (own, b"\x02"), (own, b""), (own, b"\x03")]
    tags = [
        params.TagReportData(
            epc_parameter=params.EPCData(epc=BitStr.from_bytes(epc)), ro_spec_id=params.ROSpecID(ro_spec_id=rospec)
        )
        for rospec, epc in sent
    ]
    report = messages.RO_ACCESS_REPORT(tag_report_datas=tags).to_bytes(message_id=1)
    assert [one.key for one in session.took(report, 1_000_000, 1_000_100)] == ["02", "03"]
    assert (session.counters["stale"], session.counters["bad_content"], session.counters["frames"]) == (1, 1, 1)


def test_what_is_no_llrp_reader_is_said():
    """A web server answers with words."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer():
            connected, _ = server.accept()
            with connected:
                connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connected.recv(100)

        threading.Thread(target=answer, daemon=True).start()
        with Reading(port, reopen_us=(10_000_000, 10_000_000)) as reading:
            reading.wait("said", lambda: "is this an LLRP reader?" in reading.thread.reader_state.problem)


def test_nobody_there_is_said():
    """A closed port, and a name of nobody."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    with pytest.raises(PortError, match="nobody listens there; check host and port"):
        open_tcp(f"llrp://127.0.0.1:{free}")
    with pytest.raises(PortError, match="no machine has this name"):
        open_tcp("llrp://reader.invalid:5084")


def test_a_connection_counts_what_waits_and_says_when_it_ends():
    """The port's bounds rest on this count."""
    near, far = socket.socketpair()
    device = TcpDevice.__new__(TcpDevice)
    device.timeout, device._socket = 0.01, near
    assert (device.in_waiting, device.read(1)) == (0, b"")
    far.sendall(b"abcde")
    assert (device.in_waiting, device.read(3), device.in_waiting) == (5, b"abc", 2)
    assert device.write(b"xyz") == 3
    assert far.recv(10) == b"xyz"
    assert device.read(10) == b"de"
    far.close()
    with pytest.raises(OSError, match="closed the connection"):
        device.read(1)
    device.close()


def test_thousands_of_reads_a_second_are_all_read():
    """As many readings as sightings, in the order of the reader, each true; eight in a report, as readers do under load."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    portal = Portal(reads_per_sec=400, tags_in_report=8)
    with running(portal), Reading(portal.port) as reading:
        reading.wait("readings", lambda: reading.thread.reader_state.readings > 8_000)
    assert true_in_all(portal, reading.readings)
    assert [one.key for one in reading.readings] == sorted(portal.seen)[: len(reading.readings)]


def accounted(portal, reading):
    """Every sighting so far was read, or a gap counts it and holds its moment; returns the gaps."""
    gaps = [one for one in reading.readings if one.kind == "gap"]
    kept = {one.key for one in reading.readings if one.kind == "tag"}
    newest_us = max(portal.seen[key][0] for key in kept)
    missing = [at_us for key, (at_us, _) in list(portal.seen.items()) if key not in kept and at_us < newest_us]
    assert sum(one.value for one in gaps) == len(missing) == reading.thread.reader_state.counters["left_out"]
    assert all(any(one.earliest_us <= at_us <= one.latest_us for one in gaps) for at_us in missing)
    return gaps


def slow(batch):
    """A disk that takes three milliseconds for each reading."""
    time.sleep(3 * len(batch.readings) / 1000)


def test_what_a_gateway_cannot_take_is_counted_by_a_gap_and_the_connection_stays(patient):
    """
    reader    ============================   800 a second
    disk      ....|......slow.....|.......   333 a second while it is slow
    readings  =====================  =====
    gap                         [---]        its tags are only counted until the answer comes, then all is taken again
    """
    portal = Portal(reads_per_sec=200, tags_in_report=4)
    with running(portal), Reading(portal.port) as reading:
        reading.wait("readings", lambda: len(reading.readings) > 500)
        reading.taking = slow
        reading.wait("a gap", lambda: any(one.kind == "gap" for one in reading.readings))
        reading.taking = lambda batch: None
        gap_us, count = now_us(), len(reading.readings)
        reading.wait("more", lambda: len(reading.readings) > count + 500)
        assert reading.thread.reader_state.opened == 1
        assert "more than this gateway takes" in reading.thread.reader_state.complaint
    [gap] = accounted(portal, reading)
    assert (gap.unit, gap.key) == ("{readings}", None)
    assert true_in_all(portal, [one for one in reading.readings if one.kind == "tag"])
    assert max(one.width_us for one in reading.readings) < 5_000_000
    assert reading.batches[-1].since_us > gap_us - 1_000_000
    behind_no_clear_moment(reading)


def test_a_reader_that_is_always_too_fast_is_read_as_well_as_it_goes():
    """Each reading takes as long as two or three more need to come: what is too much is counted, none is lost untold."""
    portal = Portal(reads_per_sec=200, tags_in_report=4)
    with running(portal), Reading(portal.port) as reading:
        reading.taking = slow
        reading.wait("gaps", lambda: sum(one.kind == "gap" for one in reading.readings) > 1)
        count = len(reading.readings)
        reading.wait("more", lambda: len(reading.readings) > count + 100)
        assert reading.thread.reader_state.opened == 1
    accounted(portal, reading)
    assert true_in_all(portal, [one for one in reading.readings if one.kind == "tag"])
    behind_no_clear_moment(reading)


def test_a_gap_is_told_when_its_connection_ends():
    """The cable is cut while tags are left out."""
    portal = Portal(reads_per_sec=200, tags_in_report=4)
    cable = Cable(portal)
    with running(portal, cable) as do, Reading(cable.port) as reading:
        reading.taking = slow
        state = reading.thread.reader_state
        reading.wait("left out", lambda: state.counters.get("left_out"))
        left_out = state.counters["left_out"]
        do(cable.reset())
        reading.wait("again", lambda: state.opened > 1)
    gaps = [one for one in reading.readings if one.kind == "gap"]
    assert sum(one.value for one in gaps) >= left_out
    behind_no_clear_moment(reading)
