"""The trace that a host driving a simulated reader records, in virtual time: the same seed gives the same file."""

from __future__ import annotations

from whenabouts_edge.capture.capture import Recorder, Sink
from whenabouts_edge.readers.port import Chunk, Sent
from whenabouts_edge.trace.format import Head
from whenabouts_hardware import READERS
from whenabouts_sim.readers.faults import NO_FAULTS
from whenabouts_sim.readers.reader_run import AHEAD_US, KINDS, Passage

LOOK_US = 20_000  # the host looks at its port this often, and whenever bytes have come


def record_reader(kind: str, seed: int, rate: float, tags: int, seconds: float, sink: Sink) -> int:
    """Write both directions as a trace, from power-on at time 0; return the number of frames that came.

    The host drives the reader as the agent does, one command per look.

    Raises:
        OSError: the sink cannot take a line.
        SizeLimitError: the trace would grow beyond what a recorder writes.
    """
    core, reader = KINDS[kind].core(kind, seed, NO_FAULTS), READERS[kind]
    dialogue, lines = reader.dialogue(), reader.new_decoder()
    recorder = Recorder(sink, Head(f"simulated {kind}, seed {seed}", baud=reader.baud))
    end_us, looked_us, now_us, frames = int(seconds * 1e6), 0, 0, 0
    core.power_on(now_us)
    core.load(Passage(kind, KINDS[kind], seed, rate, tags, AHEAD_US).until(end_us), now_us)
    while now_us < end_us:
        data = b"".join(piece.data for piece in core.due(now_us))
        if data:
            recorder.rx(Chunk(data, looked_us * 1000, now_us * 1000))
            for frame in lines.feed(data):
                frames += 1
                dialogue.heard(frame, now_us)
        looked_us = now_us
        if command := dialogue.due(now_us):
            core.feed(command, now_us)
            recorder.tx(command, Sent(now_us * 1000, now_us * 1000))
        next_us = core.next_us()
        soon_us = now_us + LOOK_US
        now_us = max(now_us + 1, soon_us if next_us is None else min(next_us, soon_us))
    return frames
