"""Spool and outbox against plain models: a list of messages, a broker and a cloud that lose what they like."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.edge.pending import several
from support.search import examples
from whenabouts_edge.store.spool import Message, Spool, SpoolFull
from whenabouts_edge.uplink.outbox import MAX_IN_FLIGHT, MAX_UNLANDED, Outbox


class SpoolMachine(RuleBasedStateMachine):
    """Appends, acknowledgements of any number of any boot, reopening; the model is a list of messages."""

    LIMIT = 6000

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "spool.sqlite"
        self.stored: list[Message] = []
        self.boots: list[int] = []
        self.open()

    def open(self) -> None:
        self.spool = Spool(self.path, self.LIMIT)
        assert not self.boots or self.spool.boot > self.boots[-1]
        self.boots.append(self.spool.boot)
        self.next_seq = 0

    @rule(count=st.integers(1, 5), size=st.sampled_from([0, 400]))
    def append(self, count: int, size: int) -> None:
        try:
            message = self.spool.append(several(["k"] * count, size))
        except SpoolFull:
            assert sum(len(m.payload) for m in self.stored) > self.LIMIT - 5 * 600
            return
        assert (message.boot, message.first_seq, message.last_seq) == (
            self.boots[-1], self.next_seq, self.next_seq + count - 1,
        )  # fmt: skip
        self.next_seq += count
        self.stored.append(message)

    @rule(data=st.data(), seq=st.integers(0, 30))
    def landed(self, data: st.DataObject, seq: int) -> None:
        boot = data.draw(st.sampled_from([*self.boots, 7]))
        gone = [m for m in self.stored if m.boot == boot and m.last_seq <= seq]
        assert self.spool.landed(boot, seq) == sum(m.last_seq - m.first_seq + 1 for m in gone)
        self.stored = [m for m in self.stored if m not in gone]

    @rule()
    def reopen(self) -> None:
        self.spool.close()
        self.open()

    @rule(limit=st.integers(1, 4), data=st.data())
    def after(self, limit: int, data: st.DataObject) -> None:
        positions = [None, (0, 0), *(m.position for m in self.stored)]
        position = data.draw(st.sampled_from(positions))
        expected = [m for m in self.stored if position is None or m.position > position]
        assert self.spool.after(position, limit) == expected[:limit]

    @invariant()
    def same_as_the_list(self) -> None:
        if not hasattr(self, "spool"):
            return
        state = self.spool.state
        assert state.readings == sum(m.last_seq - m.first_seq + 1 for m in self.stored)
        assert state.payload_bytes == sum(len(m.payload) for m in self.stored) <= self.LIMIT
        assert (state.boot, state.next_seq) == (self.boots[-1], self.next_seq)
        assert self.spool.last_position() == (self.stored[-1].position if self.stored else None)
        numbers = {}
        for m in self.stored:
            numbers[m.boot] = (numbers.get(m.boot, (m.first_seq, 0))[0], m.last_seq)
        if self.next_seq:
            numbers.setdefault(self.boots[-1], (self.next_seq, self.next_seq - 1))
        assert self.spool.numbers() == numbers

    def teardown(self) -> None:
        if hasattr(self, "spool"):
            self.spool.close()
            self.folder.cleanup()


class OutboxMachine(RuleBasedStateMachine):
    """The agent's publishing loop over a list as the spool, a broker that takes late or never, a cloud that lands some."""

    RESEND_S = 4.0

    @initialize()
    def begin(self) -> None:
        self.outbox = Outbox(self.RESEND_S)
        self.spool: list[Message] = []
        self.count = 0
        self.now_s = 0.0
        self.connection: list[Message] = []  # handed over, not taken
        self.ever_taken: set[tuple[int, int]] = set()
        self.at_broker: list[Message] = []
        self.sent_on_connection: list[tuple[int, int]] = []
        self.quiet_at_least_s = 0.0

    @rule(count=st.integers(1, 30))
    def store(self, count: int) -> None:
        for _ in range(count):
            self.spool.append(Message(self.count // 50, self.count, self.count, b""))
            self.count += 1

    @rule()
    def publish(self) -> None:
        while room := self.outbox.room():
            cursor = self.outbox.cursor
            messages = [m for m in self.spool if cursor is None or m.position > cursor][:room]
            if not messages:
                break
            for message in messages:
                self.outbox.sent(message, self.now_s)
                self.connection.append(message)
                self.sent_on_connection.append(message.position)

    @precondition(lambda self: self.connection)
    @rule(data=st.data())
    def taken(self, data: st.DataObject) -> None:
        """Brokers need not acknowledge in order."""
        message = self.connection.pop(data.draw(st.integers(0, len(self.connection) - 1)))
        self.ever_taken.add(message.position)
        self.at_broker.append(message)
        self.outbox.taken(message.position)

    @precondition(lambda self: self.at_broker)
    @rule(share=st.floats(0, 1))
    def land(self, share: float) -> None:
        """The cloud confirms a prefix of the spool, as far as the broker had it."""
        had = {m.position for m in self.at_broker}
        confirmed = []
        for m in self.spool:
            if m.position not in had or len(confirmed) > share * len(self.spool):
                break
            confirmed.append(m)
        self.confirm(confirmed)

    def confirm(self, confirmed: list[Message]) -> None:
        self.spool = self.spool[len(confirmed) :]
        for boot in {m.boot for m in confirmed}:
            self.outbox.landed(boot, max(m.last_seq for m in confirmed if m.boot == boot), self.now_s)

    @rule()
    def broker_forgets(self) -> None:
        self.at_broker.clear()

    @rule()
    def reconnect(self) -> None:
        self.connection.clear()
        self.outbox.restart()
        self.sent_on_connection.clear()

    @rule(seconds=st.sampled_from([0.5, 3.0, 5.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds
        waiting = bool(self.connection)
        resends = self.outbox.resends
        if self.outbox.overdue(self.now_s):
            assert not waiting
            assert self.outbox.resends == resends + 1
            assert self.outbox.cursor is None
            assert not self.outbox.overdue(self.now_s)
            self.sent_on_connection.clear()

    @invariant()
    def limits_order_and_truth(self) -> None:
        if not hasattr(self, "outbox"):
            return
        assert 0 <= self.outbox.room() <= MAX_IN_FLIGHT
        assert len(self.connection) <= MAX_IN_FLIGHT
        assert self.sent_on_connection == sorted(set(self.sent_on_connection))
        published = self.outbox.published
        if published is not None:
            assert published in self.ever_taken
            assert all(m.position in self.ever_taken for m in self.spool if m.position <= published)

    def teardown(self) -> None:
        """From any state: with a broker and a cloud that work again everything is taken and lands."""
        if not hasattr(self, "outbox"):
            return
        for _ in range(200):
            if not self.spool:
                break
            self.publish()
            while self.connection:
                message = self.connection.pop(0)
                self.ever_taken.add(message.position)
                self.at_broker.append(message)
                self.outbox.taken(message.position)
            self.limits_order_and_truth()
            had = {m.position for m in self.at_broker}
            whole = []
            for m in self.spool:
                if m.position not in had:
                    break
                whole.append(m)
            self.confirm(whole)
            if not whole:
                self.now_s += 601
                if self.outbox.overdue(self.now_s):
                    self.sent_on_connection.clear()
        assert not self.spool


TestSpool = SpoolMachine.TestCase
TestSpool.settings = settings(max_examples=examples(15), stateful_step_count=25, deadline=None)
TestOutbox = OutboxMachine.TestCase
TestOutbox.settings = settings(max_examples=examples(120), stateful_step_count=40, deadline=None)


def _message(n: int) -> Message:
    return Message(1, n, n, b"")


def test_patience_doubles_up_to_ten_minutes_and_comes_back_with_an_acknowledgement():
    """4, 8, 16 ... 600 s between resends; after the cloud spoke 4 s again."""
    outbox = Outbox(4.0)
    now_s, gaps = 0.0, []
    for _ in range(10):
        outbox.sent(_message(0), now_s)
        outbox.taken((1, 0))
        began_s = now_s
        while not outbox.overdue(now_s):
            now_s += 1.0
        gaps.append(now_s - began_s)
    assert gaps == [4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    assert outbox.resends == 10
    outbox.sent(_message(0), now_s)
    outbox.sent(_message(1), now_s)
    outbox.taken((1, 0))
    outbox.taken((1, 1))
    outbox.landed(1, 0, now_s)
    assert not outbox.overdue(now_s + 3.9)
    assert outbox.overdue(now_s + 4)


def test_window_closes_at_unlanded_messages_and_opens_when_they_land():
    """The broker need not keep more than MAX_UNLANDED messages for a cloud that is away."""
    outbox = Outbox(4.0)
    sent = 0
    while outbox.room():
        outbox.sent(_message(sent), 0.0)
        outbox.taken((1, sent))
        sent += 1
    assert sent == MAX_UNLANDED
    outbox.landed(1, 4, 1.0)
    assert outbox.room() == 5


def test_published_waits_for_the_oldest():
    """Acknowledged out of order: published moves when the gap closes, and only then."""
    outbox = Outbox(4.0)
    for n in range(3):
        outbox.sent(_message(n), 0.0)
    outbox.taken((1, 2))
    assert outbox.published is None
    outbox.taken((1, 0))
    assert outbox.published == (1, 0)
    outbox.taken((1, 1))
    assert outbox.published == (1, 2)
    outbox.restart()
    assert outbox.published == (1, 2)
