"""Steps of a shard, and states at times in milliseconds."""

from support.cloud.landing import EPOCH_US
from support.latwin.states import MS, reports, state
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.latwin.shard.shard import LatwinShard


def at(ms):
    """A point in time."""
    return EPOCH_US + ms * MS


def on(process, number, ms, value=True, *, clock=None, seq=None, length_ms=0, **more):
    """A state of a gateway; clocks are concurrent unless given, the number of the reading is that of the state."""
    clock = clock or [number if p == process else 0 for p in range(2)]
    return state(process, number if seq is None else seq, clock, at(ms), at(ms + length_ms), value, **more)


def watermark_of(boot=1, **ms):
    """Watermarks of gateways, each at a time."""
    return [Watermark(f"hall/{name}", at(t), boot) for name, t in ms.items()]


def stepped(shard, job, rows, watermarks=()):
    """A step, and one more in which its watermarks count; the rows emitted."""
    results = shard.step({"reports": reports(job, rows)}, [watermarks]).results.to_pylist()
    return results + shard.step({"reports": reports(job, [])}, [watermarks]).results.to_pylist()


def whole(job, rows, watermarks):
    """Rows of one batch of everything."""
    shard = LatwinShard(job)
    return shard.step({"reports": reports(job, rows)}, [watermarks], everything=True).results.to_pylist()
