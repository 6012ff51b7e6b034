"""Messages of a gateway to the cloud: when a watermark is given, and the gateway's status."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from support.edge.pending import several
from whenabouts_edge.agent.delivery import DELAY_US, LENGTH_US_MAX, Delivery, birth, still_kept
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.load import parse
from whenabouts_edge.store.spool import Spool
from whenabouts_protocol import Ack, decode_heartbeat
from whenabouts_protocol.layout import MAX_BOOTS

CONFIG = parse("""
site = "hall"
gateway = "gw"
[[reader]]
name = "dock"
kind = "m6e"
port = "a"
leave_ms = 900
[[reader]]
name = "oven"
kind = "line"
port = "b"
unit = "Cel"
""")


def idle(gap_open=False):
    """An intake that has nothing on its way."""
    return SimpleNamespace(accepted=0, settled=0, gap_open=gap_open)


def test_a_watermark_is_given_when_all_before_it_was_published(tmp_path):
    """
    stored 0 1    not connected: none      landed: 100       50: never falls     an open gap: none
    """

    async def main():
        spool = Spool(tmp_path / "spool.sqlite", 1 << 20)
        with ThreadPoolExecutor(1) as thread:
            delivery = Delivery(CONFIG, birth(CONFIG, spool.boot, [], None), spool, thread, print, None)
            spool.append(several(["a", "b"]))
            await delivery.watermark(100, idle())
            assert delivery.frontier_us is None
            spool.landed(spool.boot, 1)
            for frontier_us, intake, watermarked in (
                (None, idle(), None), (100, idle(gap_open=True), None), (100, idle(), 100), (50, idle(), 100),
            ):  # fmt: skip
                await delivery.watermark(frontier_us, intake)
                assert delivery.frontier_us == watermarked
            assert delivery.status() == {
                "connected": False, "problem": "not connected yet", "mqtt": None, "client_id": "hall/gw", "troubles": [],
                "certificate_end_s": None, "connections": 0, "resends": 0, "acks_refused": 0, "refused": 0, "oversized": 0,
            }  # fmt: skip
        spool.close()

    asyncio.run(main())


def test_a_watermark_waits_while_a_state_may_be_missing_that_nothing_shows(tmp_path):
    """The spool refused the latest state of the group: until another is stored, the one before would seem to go on."""

    async def main():
        spool, group = Spool(tmp_path / "spool.sqlite", 1 << 20), SimpleNamespace(owes=True, topics=[], heard=print)
        with ThreadPoolExecutor(1) as thread:
            delivery = Delivery(CONFIG, birth(CONFIG, spool.boot, [], None), spool, thread, print, group)
            for owes, watermarked in ((True, None), (False, 100), (True, 100)):
                group.owes = owes
                await delivery.watermark(100 if delivery.frontier_us is None else 200, idle())
                assert delivery.frontier_us == watermarked
        spool.close()

    asyncio.run(main())


def test_a_watermark_waits_for_accepted_readings(tmp_path):
    """It is not given while a reading is between port and spool."""

    async def main():
        spool = Spool(tmp_path / "spool.sqlite", 1 << 20)
        with ThreadPoolExecutor(1) as thread:
            delivery = Delivery(CONFIG, birth(CONFIG, spool.boot, [], None), spool, thread, print, None)
            intake = SimpleNamespace(accepted=1, settled=0, gap_open=False)
            task = asyncio.create_task(delivery.watermark(100, intake))
            await asyncio.sleep(0.05)
            assert delivery.frontier_us is None
            intake.settled = 1
            await asyncio.wait_for(task, 5)
            assert delivery.frontier_us == 100
        spool.close()

    asyncio.run(main())


def test_a_connection_made_while_the_disk_is_slow_begins_with_the_oldest_message(tmp_path):
    """
    connection 1    sent 0 1 2, none taken; the disk hangs while 3 is asked for
    connection 2    made before the disk answers: sent 0 1 2 3
    """

    async def main():
        spool, sent, free = Spool(tmp_path / "spool.sqlite", 1 << 20), [], threading.Event()
        with ThreadPoolExecutor(1) as thread:
            delivery = Delivery(CONFIG, birth(CONFIG, spool.boot, [], None), spool, thread, print, None)
            uplink, loop = delivery.uplink, asyncio.get_running_loop()
            uplink.connected = True
            uplink.send = lambda message: (sent.append(message.first_seq), uplink.outbox.sent(message, 0.0))

            async def all_sent():
                while sent[-1:] != [spool.state.next_seq - 1]:
                    await asyncio.sleep(0.01)

            for key in "abc":
                await loop.run_in_executor(thread, spool.append, several([key]))
            task = asyncio.create_task(delivery.publish())
            delivery.work.set()
            await asyncio.wait_for(all_sent(), 5)
            hangs = thread.submit(free.wait)
            thread.submit(spool.append, several(["d"]))
            delivery.work.set()
            while not hangs.running() or thread._work_queue.qsize() < 2:  # `d`, and the question for it
                await asyncio.sleep(0.01)
            uplink.outbox.restart()
            sent.clear()
            free.set()
            while spool.state.next_seq < 4:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(all_sent(), 5)
            task.cancel()
        spool.close()
        assert sent == [0, 1, 2, 3]

    asyncio.run(main())


def test_a_birth_names_every_stream():
    """Of readers, with the parts of their stamps, of their presence, whose stamps are longer, and of rules."""
    born = birth(CONFIG, 7, ["hot"], None, {"dock/tags": (1_000_000, 16_000, 22_000, 20_000)})
    unknown = (None, None, None, None)
    assert born.streams == [
        ("dock/tags", "tag", None, DELAY_US, LENGTH_US_MAX, 1_000_000, 16_000, 22_000, 20_000),
        ("oven/values", "measure", "Cel", DELAY_US, LENGTH_US_MAX, *unknown),
        ("dock/presence", "tag", None, DELAY_US, LENGTH_US_MAX + 900_000, *unknown),
        ("hot", "measure", "[ppm]", DELAY_US, LENGTH_US_MAX, *unknown),
    ]
    assert (born.boot, born.group, born.view) == (7, None, ["gw"])
    assert born.build.startswith("whenabouts ")


def test_a_heartbeat_says_what_the_bound_comes_from_and_when_the_certificate_ends(tmp_path):
    """Neither is known of a clock without a name and of a connection without a certificate."""

    async def main():
        spool = Spool(tmp_path / "spool.sqlite", 1 << 20)
        sent = []
        with ThreadPoolExecutor(1) as thread:
            delivery = Delivery(CONFIG, birth(CONFIG, spool.boot, [], None), spool, thread, print, None)
            delivery.uplink.heartbeat = lambda payload: sent.append(decode_heartbeat(payload))
            delivery.heartbeat(ClockSample(0, 0, 250, "bounded", "chrony"), 0, 3, 4)
            delivery.uplink.certificate_end_s = 1_830_000_000
            delivery.heartbeat(ClockSample(0, 0, None, "unbounded"), 0, 3, 4)
        spool.close()
        assert [(one.bound_us, one.clock_source, one.certificate_ends_s, one.invalid) for one in sent] == [
            (250, "chrony", None, 4),
            (None, None, 1_830_000_000, 4),
        ]

    asyncio.run(main())


def test_an_acknowledgement_counts_as_far_as_this_process_has_sent(tmp_path):
    """
    stored by an earlier process 0 1 2   by this one 0 1   sent: nothing   the earlier 0 1   all
    """

    async def main():
        path = tmp_path / "spool.sqlite"
        earlier = Spool(path, 1 << 20)
        before, messages = earlier.boot, [earlier.append(several(["a", "b"])), earlier.append(several(["c"]))]
        earlier.close()
        spool = Spool(path, 1 << 20)
        messages.append(spool.append(several(["d", "e"])))
        with ThreadPoolExecutor(1) as thread:
            delivery = Delivery(CONFIG, birth(CONFIG, spool.boot, [], None), spool, thread, print, None)
            task = asyncio.create_task(delivery.forget_landed())

            async def left_after(landed: dict[int, int]) -> int:
                delivery.work.clear()
                delivery._on_ack(Ack("hall", "gw", landed))
                if delivery._acked_numbers.is_set():
                    await asyncio.wait_for(delivery.work.wait(), 10)
                return spool.state.readings

            assert await left_after({before: 2}) == 5
            assert await left_after({before: 2, spool.boot: 1}) == 5
            assert delivery.status()["acks_refused"] == 1
            delivery.uplink.outbox.sent(messages[0], 0.0)
            assert await left_after({before: 2}) == 3
            for message in messages[1:]:
                delivery.uplink.outbox.sent(message, 0.0)
            assert await left_after({spool.boot: 2}) == 3
            assert delivery.status()["acks_refused"] == 2
            assert await left_after({before: 99, spool.boot: 1}) == 0
            task.cancel()
        spool.close()

    asyncio.run(main())


def test_a_heartbeat_names_what_is_still_kept_also_before_the_first_watermark():
    """
    boot        covered by the watermark    kept now      named
    1           0..9                        all landed    -
    2           0..9                        4..30         4..9
    3           0..9                        12..30        12..11: no number of it is waited for
    4           no                          7..30         7..6: those before 7 were confirmed elsewhere
    5           no                          0..30         -
    """
    published, kept = dict.fromkeys((1, 2, 3), (0, 9)), {2: (4, 30), 3: (12, 30), 4: (7, 30), 5: (0, 30)}
    assert still_kept(published, kept) == {2: (4, 9), 3: (12, 11), 4: (7, 6)}
    assert len(still_kept({}, dict.fromkeys(range(100), (1, 2)))) == MAX_BOOTS
