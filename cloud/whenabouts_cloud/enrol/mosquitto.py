"""The configuration and the access rules of a mosquitto that knows each client by its certificate. Tried with 2.0.11.

`%u` in a pattern is the user, which is the certificate's name: `site/gateway`, two levels of a topic. mosquitto refuses
users with + or #, and no name of a site or gateway has them.
"""

from collections.abc import Iterator, Sequence

from whenabouts_cloud.enrol.names import INGEST, PUBLISHER
from whenabouts_cloud.enrol.register import Register
from whenabouts_protocol.layout import MAX_MESSAGE_BYTES
from whenabouts_protocol.topics import PREFIX, VERSION

MAX_PAYLOAD_BYTES = MAX_MESSAGE_BYTES
# With the topic and properties. Less than ingest and agents take: mosquitto 2.0.11 keeps a longer packet back from a client
# that takes no such, but counts it as on the way for ever, and after MAX_INFLIGHT_MESSAGES sends this client nothing more.
MAX_PACKET_BYTES = MAX_PAYLOAD_BYTES + 512
MAX_CONNECTIONS = 10_000
MAX_INFLIGHT_MESSAGES = 10_000  # more than the ingest lets one gateway have waiting
MAX_INFLIGHT_BYTES = 48 << 20  # as many as the ingest holds before they are durable; mosquitto keeps a copy of each
MAX_QUEUED_MESSAGES, MAX_QUEUED_BYTES = 40_000, 64 << 20  # what does not fit is sent again from the spools, after 30 s
MAX_KEEPALIVE_S = 3600
SESSION_DAYS = 14

ANY = "+/+"
WRITTEN = ("obs", "heartbeat", "birth", "status", "state")
READ = ("ack", "rules", "cmd", "cmd/+")
PEER = ("birth", "status", "state")
LANDED = ("obs", "heartbeat", "birth", "status", "rules")  # rules: which streams they derive

ACCESS, CONFIGURATION, SESSIONS = "acl", "mosquitto.conf", "sessions"


def configuration(folder: str, port: int, bind: str | None, user: str) -> str:
    """Text of `mosquitto.conf`. folder: absolute, with the other files; user: who mosquitto becomes if root starts it."""
    lines = (
        "# Written by `whenabouts-cloud enrol broker`, which overwrites it.",
        f"user {user}",
        "per_listener_settings false",
        f"listener {port}{f' {bind}' if bind else ''}",
        f"cafile {folder}/ca.crt",
        f"certfile {folder}/server.crt",
        f"keyfile {folder}/server.key",
        f"crlfile {folder}/crl.pem",
        "tls_version tlsv1.2",
        "require_certificate true",
        "use_identity_as_username true",
        "use_username_as_clientid true",
        f"max_connections {MAX_CONNECTIONS}",
        "max_qos 1",  # nobody needs more, and mosquitto would have to keep messages of QoS 2 whose senders never end them
        "max_topic_alias 0",
        "allow_anonymous false",
        f"acl_file {folder}/{ACCESS}",
        f"message_size_limit {MAX_PAYLOAD_BYTES}",
        f"max_packet_size {MAX_PACKET_BYTES}",
        f"max_inflight_messages {MAX_INFLIGHT_MESSAGES}",
        f"max_inflight_bytes {MAX_INFLIGHT_BYTES}",
        f"max_queued_messages {MAX_QUEUED_MESSAGES}",
        f"max_queued_bytes {MAX_QUEUED_BYTES}",
        f"max_keepalive {MAX_KEEPALIVE_S}",
        f"persistent_client_expiration {SESSION_DAYS}d",
        "persistence true",
        f"persistence_location {folder}/{SESSIONS}/",
        "autosave_interval 60",
        "set_tcp_nodelay true",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        "log_type notice",
    )
    return "\n".join(lines) + "\n"


def access(register: Register) -> str:
    """Text of the access rules: what is not listed is denied, to everybody."""
    return "\n".join((
        "# Written by `whenabouts-cloud enrol`, which overwrites it.",
        *(f"pattern write {_topic('%u', leaf)}" for leaf in WRITTEN),
        *(f"pattern read {_topic('%u', leaf)}" for leaf in READ),
        *_ingest(INGEST, ()),
        *(line for identity, sites in sorted(register.ingests.items()) for line in _ingest(identity, sites)),
        f"user {PUBLISHER}",
        f"topic read {_topic(ANY, 'birth')}",
        f"topic write {_topic(ANY, 'rules')}",
        *_gateways(register),
    )) + "\n"  # fmt: skip


def _ingest(identity: str, sites: Sequence[str]) -> Iterator[str]:
    """What an ingest reads and writes: of these sites, of all without any."""
    yield f"user {identity}"
    for place in [f"{site}/+" for site in sites] or [ANY]:
        yield from (f"topic read {_topic(place, leaf)}" for leaf in LANDED)
        yield f"topic write {_topic(place, 'ack')}"


def _gateways(register: Register) -> Iterator[str]:
    """Denials for revoked gateways, which end open connections' rights too, and what members of groups read."""
    for identity, one in sorted(register.gateways.items()):
        peers = register.peers(identity)
        if one.revoked or peers:
            yield f"user {identity}"
        if one.revoked:
            yield f"topic deny {PREFIX}/#"
        yield from (f"topic read {_topic(peer, leaf)}" for peer in peers for leaf in PEER)


def _topic(place: str, leaf: str) -> str:
    return f"{PREFIX}/{VERSION}/{place}/{leaf}"
