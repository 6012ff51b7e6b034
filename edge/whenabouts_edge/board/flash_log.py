"""Messages in flash until the cloud has landed them: segment files used in turn, and the data to begin again after a cut.

Segment n holds generation g when g mod segments = n. A segment is begun only when all its messages have landed, so no
message that is still needed is overwritten. Head and records are framed alike:

    head     magic, generation                                           crc
    record   length of payload | boot, first number, readings | payload  crc

Each checksum continues the one before it, from the head on. So a record is accepted only behind the very bytes behind
which it was written: neither a torn write nor the remains of an older one are ever taken for a record. After a cut the
torn bytes are overwritten, from the end of the last whole record.

The landed position is kept with the boot counter in two slots that are written in turn: one of them is always whole. A
position that is too old only makes some messages go out again, so it is written seldom. The boot counter is written
before it is used. A boot is counter x 2^32 + 32 random bits, so that a board whose flash was lost does not repeat old
identities.

`append` is one write and one sync of flash: the caller gathers readings. A full log refuses new messages. Memory: one
message, and two numbers for each boot that has messages. A damaged byte in a segment hides the rest of that segment; the
hidden bytes are counted in `unreadable_bytes`, as torn ones are.

The flash is an object with two methods: read(name, offset, size) returns the bytes there, b"" beyond the end or if there
is no such file; write(name, offset, data) writes from offset on, and offset 0 begins an empty file. When write returns,
all of data is durable; when it cannot write and raises OSError, any part of data may be.
"""

import binascii
import struct

from whenabouts_edge.board import tidy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MESSAGE_BYTES_MAX = 3584  # a record and its frame fit in a block of 4 kB
BOOT_RANDOM_BITS = 32
_MAGIC = b"WAr1"
_HEAD = ">4sI"
_RECORD = ">HQQH"
_SLOT = ">4sIIII"  # magic, count of writes, boot counter, position: generation and offset
_CRC = ">I"
_CRC_BYTES = 4
_HEAD_BYTES = struct.calcsize(_HEAD) + _CRC_BYTES
_RECORD_BYTES = struct.calcsize(_RECORD)
_SLOTS = ("slot0", "slot1")


def record_bytes(length: int) -> int:
    """Bytes that a payload of this length takes in a segment."""
    return _RECORD_BYTES + length + _CRC_BYTES


def _head(generation: int) -> "tuple[bytes, int]":
    """The head of a segment, and its checksum, which that of the first record continues."""
    body = struct.pack(_HEAD, _MAGIC, generation)
    crc = binascii.crc32(body)
    return body + struct.pack(_CRC, crc), crc


class Message:
    """One stored batch and its place; position and next grow from message to message."""

    __slots__ = ("boot", "count", "first_seq", "next", "payload", "position")

    def __init__(
        self,
        position: "tuple[int, int]",
        next: "tuple[int, int]",
        boot: int,
        first_seq: int,
        count: int,
        payload: bytes,
    ) -> None:
        self.position, self.next = position, next
        self.boot, self.first_seq, self.count, self.payload = boot, first_seq, count, payload

    @property
    def last_seq(self) -> int:
        """The number of its last reading."""
        return self.first_seq + self.count - 1


class FlashLog:
    """The durable queue of one board. Opening it begins a boot; random_bits: 32 of them.

    readings, payload_bytes: stored and not landed. refused: appends that found no room. next_seq: the next number.

    Raises:
        ValueError: fewer than two segments, or segments that one message may not fit in.
        OSError: the flash cannot be read or written.
    """

    def __init__(self, flash: "Any", segments: int, segment_bytes: int, random_bits: int) -> None:
        least = _HEAD_BYTES + record_bytes(MESSAGE_BYTES_MAX)
        if segments < 2 or segment_bytes < least:
            raise ValueError(
                f"flash_log: found {segments} segments of {segment_bytes} bytes, expected at least 2 of {least}"
            )
        self._flash = flash
        self._segments, self._segment_bytes = segments, segment_bytes
        self.readings = self.payload_bytes = self.refused = self.unreadable_bytes = 0
        self.next_seq = 0
        self._ranges: dict[int, list[int]] = {}  # boot -> first and last number that are kept
        self._landed: dict[int, int] = {}
        self._held: dict[int, int] = {}  # segment -> generation that it holds
        self._doubted: tuple[int, int] | None = None  # where a write failed, with an unknown result
        self._slot_writes, boots, landed = self._read_slots()
        self._tail, self._crc = (0, 0), 0  # where the next record goes, and the checksum before it
        self._head = (0, 0)  # the oldest message that has not landed
        boots = max(boots, self._scan(landed))
        self._boots = boots + 1
        self.boot = self._boots << BOOT_RANDOM_BITS | random_bits
        self._write_slot()

    # Adding.

    def append(self, count: int, payload: bytes) -> "Message | None":
        """Store the message of the next `count` numbers; durable when this returns. None, with nothing stored: no room.

        Raises:
            ValueError: the payload is empty or longer than MESSAGE_BYTES_MAX, or count is not 1 to 65535.
            OSError: the flash cannot be written; no number was used up.
        """
        if not 0 < len(payload) <= MESSAGE_BYTES_MAX or not 0 < count < 0x10000:
            raise ValueError(
                f"flash_log: found {count} readings in {len(payload)} bytes, expected some in at most {MESSAGE_BYTES_MAX}"
            )
        self._settle_doubt()
        generation, offset = self._tail
        head, crc = b"", self._crc
        size = record_bytes(len(payload))
        if offset + size > self._segment_bytes or generation == 0:
            generation, offset = generation + 1, 0
            if generation - self._head[0] >= self._segments:
                self.refused += 1
                return None
            head, crc = _head(generation)
        fields = struct.pack(_RECORD, len(payload), self.boot, self.next_seq, count)
        crc = binascii.crc32(payload, binascii.crc32(fields, crc))
        record = b"".join([head, fields, payload, struct.pack(_CRC, crc)])  # one copy: memory is short
        start, tail = (generation, offset + len(head)), (generation, offset + len(head) + size)
        message = Message(start, tail, self.boot, self.next_seq, count, payload)
        ranges, next_seq = self._ranges.copy(), message.last_seq + 1
        ranges.setdefault(self.boot, [self.next_seq, 0])
        self._held[generation % self._segments] = generation  # the messages of an earlier one have landed
        self._doubted = (generation, offset)
        self._flash.write(self._name(generation), offset, record)
        # From here on no memory is asked for: if there were none, numbers of a stored message would be given again.
        self._doubted = None
        self._ranges, self._tail = ranges, tail
        self._crc, self.next_seq = crc, next_seq
        if not self.readings:
            self._head = start
        self._count(message)
        return message

    def _settle_doubt(self) -> None:
        """Overwrite the remains of a failed write, as its numbers are given again: they must never be taken for a record."""
        if self._doubted is not None:
            generation, offset = self._doubted
            self._flash.write(self._name(generation), offset, bytes(_RECORD_BYTES))
            self._doubted = None

    # Reading.

    @property
    def end(self) -> "tuple[int, int]":
        """The position behind the newest message."""
        return self._tail

    def after(self, position: "tuple[int, int] | None") -> "Message | None":
        """The oldest message not landed, at or behind a position (`Message.next`); the oldest of all for None."""
        if not self.readings:
            return None
        return self._next(self._head if position is None else max(position, self._head))

    def numbers(self) -> "dict[int, tuple[int, int]]":
        """First and last number of the stored messages of each boot; (next, next - 1) for this boot when all that it
        numbered has landed.
        """
        ranges = {boot: (ends[0], ends[1]) for boot, ends in self._ranges.items()}
        if self.next_seq and self.boot not in ranges:
            ranges[self.boot] = (self.next_seq, self.next_seq - 1)
        return ranges

    # Forgetting.

    def landed(self, boot: int, seq: int) -> int:
        """Forget the oldest messages that are covered, as the cloud holds every reading of boot up to seq.

        Returns the number of readings forgotten. A message that is covered in part stays whole. Nothing is written: see
        `save`.

        Raises:
            OSError: the flash cannot be read; messages forgotten until then stay forgotten.
        """
        if boot in self._ranges:
            self._landed[boot] = max(seq, self._landed.get(boot, -1))
        forgotten = 0
        message = self._next(self._head)
        while message is not None and self._landed.get(message.boot, -1) >= message.last_seq:
            tidy()
            self.readings -= message.count
            self.payload_bytes -= len(message.payload)
            forgotten += message.count
            self._head = message.next
            following = self._next(message.next)
            self._begin_range(message.boot, following)
            message = following
        return forgotten

    def _begin_range(self, gone: int, message: "Message | None") -> None:
        """Begin the range of a boot with the oldest readable message, so that nobody waits for a damaged one."""
        if message is None or message.boot != gone:
            self._ranges.pop(gone, None)
            self._landed.pop(gone, None)
        if message is None:
            self._forget_all()
        else:
            self._head = message.position  # not the end of the segment before it, which is free now
            self._ranges[message.boot][0] = message.first_seq

    def _forget_all(self) -> None:
        """Forget all messages, as none that is left can be read."""
        self.readings = self.payload_bytes = 0
        self._ranges.clear()
        self._landed.clear()
        self._head = self._tail

    def save(self) -> None:
        """Write the landed position, so that less is sent again after a cut. One write of flash if it changed."""
        if self._saved != self._head:
            self._write_slot()

    # The files.

    def _name(self, generation: int) -> str:
        return f"log{generation % self._segments}"

    def _scan(self, landed: "tuple[int, int]") -> int:
        """Find the newest segment, its end and all messages not landed; returns the highest boot counter seen."""
        generations = []
        for n in range(self._segments):
            generation = self._generation(n)
            if generation is not None:
                self._held[n] = generation
                generations.append(generation)
        boots = 0
        for generation in sorted(generations):
            self._tail, self._crc = (generation, _HEAD_BYTES), _head(generation)[1]
            while True:
                message = self._read(self._tail, self._crc)
                if message is None:
                    break
                record, self._crc = message
                self._tail = record.next
                boots = max(boots, record.boot >> BOOT_RANDOM_BITS)
                if record.position >= landed:
                    if not self.readings:
                        self._head = record.position
                    self._count(record)
            self.unreadable_bytes += self._rest(self._tail)
        if not self.readings:
            self._head = self._tail
        return boots

    def _generation(self, n: int) -> "int | None":
        raw = self._flash.read(f"log{n}", 0, _HEAD_BYTES)
        if len(raw) < _HEAD_BYTES:
            return None
        generation: int = struct.unpack(_HEAD, raw[:-_CRC_BYTES])[1]
        return generation if raw == _head(generation)[0] and generation % self._segments == n else None

    def _read(self, position: "tuple[int, int]", crc: "int | None" = None) -> "tuple[Message, int] | None":
        """The message at a position and its checksum; None if no message there continues crc.

        crc: the checksum before it; if None, the one before it in flash.
        """
        generation, offset = position
        name = self._name(generation)
        if self._held.get(generation % self._segments) != generation:
            return None
        start = self._flash.read(name, offset - _CRC_BYTES, _CRC_BYTES + _RECORD_BYTES)
        if len(start) < _CRC_BYTES + _RECORD_BYTES:
            return None
        if crc is None:
            [crc] = struct.unpack(_CRC, start[:_CRC_BYTES])
        head = start[_CRC_BYTES:]
        length, boot, first_seq, count = struct.unpack(_RECORD, head)
        if not 0 < length <= MESSAGE_BYTES_MAX or offset + record_bytes(length) > self._segment_bytes:
            return None
        payload = self._flash.read(name, offset + _RECORD_BYTES, length)
        end = self._flash.read(
            name, offset + _RECORD_BYTES + length, _CRC_BYTES
        )  # separate, so the payload is copied once
        if len(end) < _CRC_BYTES:
            return None
        [record_crc] = struct.unpack(_CRC, end)
        if binascii.crc32(payload, binascii.crc32(head, crc)) != record_crc:
            return None
        next = (generation, offset + record_bytes(length))
        return Message(position, next, boot, first_seq, count, payload), record_crc

    def _next(self, position: "tuple[int, int]") -> "Message | None":
        """The first message at or behind a position, which is the end of a message or of a segment."""
        while position < self._tail:
            record = self._read(position) if position[1] else None
            if record is not None:
                return record[0]
            position = (position[0] + 1, _HEAD_BYTES)
        return None

    def _rest(self, position: "tuple[int, int]") -> int:
        generation, offset = position
        name, size = self._name(generation), 0
        while True:
            piece = len(self._flash.read(name, offset + size, 512))
            if not piece:
                return size
            size += piece

    def _count(self, message: Message) -> None:
        if message.boot not in self._ranges:
            self._ranges[message.boot] = [message.first_seq, 0]
        self._ranges[message.boot][1] = message.last_seq
        self.readings += message.count
        self.payload_bytes += len(message.payload)

    # The slots.

    def _read_slots(self) -> "tuple[int, int, tuple[int, int]]":
        """Count of writes, boot counter and position of the newest whole slot."""
        newest = (0, 0, (0, 0))
        size = struct.calcsize(_SLOT)
        for name in _SLOTS:
            raw = self._flash.read(name, 0, size + _CRC_BYTES)
            if len(raw) < size + _CRC_BYTES or struct.pack(_CRC, binascii.crc32(raw[:size])) != raw[size:]:
                continue
            magic, writes, boots, generation, offset = struct.unpack(_SLOT, raw[:size])
            if magic == _MAGIC and writes > newest[0]:
                newest = (writes, boots, (generation, offset))
        return newest

    def _write_slot(self) -> None:
        writes = self._slot_writes + 1
        body = struct.pack(_SLOT, _MAGIC, writes, self._boots, self._head[0], self._head[1])
        self._flash.write(_SLOTS[writes % 2], 0, body + struct.pack(_CRC, binascii.crc32(body)))
        self._slot_writes, self._saved = writes, self._head
