"""Checks of a peer's state message: it is decoded under limits, and believed only as far as a peer can know.

A gateway can claim anything about itself; that harms only conclusions about it. About a third gateway it is
believed a little beyond the counts known here, since its message may have overtaken that gateway's messages; within this
limit a liar can harm conclusions about that gateway. About the receiving gateway it is believed only for states that have
begun. Counts beyond these limits are cut off and the rest is believed: an honest gateway may repeat the counts of a liar,
and must stay heard.
"""

from whenabouts_protocol.errors import WireError
from whenabouts_protocol.group_state import state_of
from whenabouts_protocol.messages.batch import decode_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_edge.group.dense_clock import DenseClock
    from whenabouts_edge.group.membership import View
    from whenabouts_protocol.group_state import LocalState

MAX_STATE_BYTES = 8192  # of a state message: 64 counts and 28 values need less
MAX_JUMP = 100  # states of a third gateway that a peer can have heard of before this one did
MAX_STATES = 1 << 40  # of one gateway in one view: 34 years of a thousand a second


class PeerError(ValueError):
    """A state message that is not believed; `reason` is the name of its counter."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def decode_state(payload: bytes, site: str, gateway: str) -> "tuple[int, LocalState]":
    """Boot and state in a message on the state topic of a gateway.

    Raises:
        PeerError: the message holds anything else, whatever its bytes.
    """
    if len(payload) > MAX_STATE_BYTES:
        raise PeerError("malformed", f"found {len(payload)} bytes, expected at most {MAX_STATE_BYTES}")
    try:
        readings = decode_batch(payload)
    except WireError as error:
        raise PeerError("malformed", str(error)) from None
    reading = readings[0]
    state = state_of(reading)
    if len(readings) != 1 or state is None:
        raise PeerError("malformed", f"found {len(readings)} readings, expected one that is a local state")
    if (reading.site, reading.gateway) != (site, gateway):
        raise PeerError(
            "foreign", f"found a state of {reading.site}/{reading.gateway} on the topic of {site}/{gateway}"
        )
    return reading.boot, state


def believed(gateway: str, boot: int, state: "LocalState", view: "View", clock: "DenseClock") -> "tuple[int, ...]":
    """The clock to merge: third gateways at most MAX_JUMP states beyond the known counts, this gateway at most its own.

    Raises:
        PeerError: the sender is no member of this view, uses another member's index, or gives an impossible number.
    """
    members = view.members
    if len(state.clock) != len(members) or members[state.process] != (gateway, boot) or state.process == view.own:
        raise PeerError(
            "foreign", f"found process {state.process} of {len(state.clock)}, boot {boot}; the view differs"
        )
    if state.number >= MAX_STATES:
        raise PeerError("impossible", f"found state number {state.number}, expected fewer than {MAX_STATES} states")
    limits = [count + MAX_JUMP for count in clock.newest]
    limits[view.own], limits[state.process] = clock.number, state.number
    return tuple([min(count, limits[i]) for i, count in enumerate(state.clock)])
