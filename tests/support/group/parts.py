"""A process of a group in a test, and messages of its peers."""

from whenabouts_edge.group.conditions import Presence
from whenabouts_edge.group.detection import Detection
from whenabouts_edge.group.process import SETTLE_US, GroupProcess
from whenabouts_protocol import Reading, encode_batch
from whenabouts_protocol.group_state import attrs_of


def message(view, process, clock, gateway="a", boot=5, site="hall", group="office", count=1, **more):
    """A message of a peer: the state of a process in a view."""
    return encode_batch([
        Reading(site=site, gateway=gateway, boot=boot, seq=n, stream="s", kind="state", t_min=0, t_max=1, vclock=clock,
                attrs=attrs_of(group, view, process, {}), **more)
        for n in range(count)
    ])  # fmt: skip


def process(peers=("a",), conditions=None, clock_heartbeat_us=0):
    """Gateway b of a group, with one value of its state."""
    conditions = [Presence("here", "tags", None, 1, 1000)] if conditions is None else conditions
    return GroupProcess("office", "b", 7, list(peers), Detection(conditions), clock_heartbeat_us)


def settled(member, now_us=10 * SETTLE_US):
    """Let the process begin its first view; return the report of state 0."""
    member.advance(0, 0)
    [report] = member.advance(1, now_us)
    assert not report.is_heartbeat
    assert set(report.clock) == {0}
    return report
