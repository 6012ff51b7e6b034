"""The register of certificates and gateways, and what follows from it for brokers and ingest."""

import json

import pytest

from whenabouts_cloud.enrol.mosquitto import access, configuration
from whenabouts_cloud.enrol.names import EnrolError
from whenabouts_cloud.enrol.register import (
    DAY_S,
    FORGOTTEN_S,
    YEAR_S,
    Broker,
    Certificate,
    Register,
    decode,
    encode,
    gateways_json,
)

NOW_S = 1_790_000_000


def register(**groups: str) -> Register:
    """Gateways of site s with one group each."""
    made = Register()
    for n, (name, group) in enumerate(groups.items()):
        made = made.enrolled(f"s/{name}", (), (group,)).issued(Certificate(f"s/{name}", n, NOW_S + DAY_S), NOW_S)
    return made


def test_a_register_survives_its_file():
    """Every field comes back."""
    made = (
        register(a="office").enrolled("s/日", ("dock/+",), ()).with_broker(Broker("/b", "h", 1)).revoked("s/a", NOW_S)
    )
    made = made.with_ingest("ingest=a", ["s", "t"]).with_ingest("ingest=b", [])
    assert decode(encode(made)) == made


def test_a_register_of_before_there_were_several_ingests_is_read():
    """It has no list of them."""
    old = json.loads(encode(Register()))
    del old["ingests"]
    assert decode(json.dumps(old).encode()) == Register()


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"certificates": [{}], "gateways": {}, "brokers": []}', b"\xff"])
def test_a_damaged_register_is_refused(data):
    """With the file's name and what to do."""
    with pytest.raises(EnrolError, match=r"register.json: found .* backup"):
        decode(data)


def test_a_renewal_keeps_streams_and_groups_unless_it_names_others():
    """And lets a revoked gateway in again, but not into its groups."""
    made = Register().enrolled("s/a", ("dock/tags",), ("office",)).enrolled("s/a", (), ())
    assert (made.gateways["s/a"].streams, made.gateways["s/a"].groups) == (("dock/tags",), ("office",))
    made = made.enrolled("s/a", ("#",), ()).revoked("s/a", NOW_S)
    assert made.gateways["s/a"].revoked
    again = made.enrolled("s/a", (), ()).gateways["s/a"]
    assert (again.streams, again.groups, again.revoked) == (("#",), (), False)


def test_revoking_concerns_all_valid_certificates_of_one_identity():
    """Certificates of others stay valid, and one that has ended needs no entry."""
    made = (
        register(a="x", b="x")
        .issued(Certificate("s/a", 10, NOW_S - 1), NOW_S)
        .issued(Certificate("s/a", 11, NOW_S + 9), NOW_S)
    )
    made = made.revoked("s/a", NOW_S)
    assert made.revocations() == {0: NOW_S, 11: NOW_S}


def test_certificates_that_have_long_ended_are_forgotten_with_the_next():
    """The register of a gateway that is renewed for ever stays small."""
    made = Register()
    for n in range(100):
        made = made.issued(Certificate("s/a", n, NOW_S + n * FORGOTTEN_S), NOW_S + n * FORGOTTEN_S)
    assert len(made.certificates) <= 3


def test_warnings_name_what_ends():
    """Neither what has been renewed nor what is revoked."""
    made = Register()
    for identity, ends_s in (("s/old", -1), ("s/soon", 5 * DAY_S), ("s/renewed", 5 * DAY_S), ("s/renewed", 90 * DAY_S)):
        made = made.issued(Certificate(identity, 1, NOW_S + ends_s), NOW_S)
    made = made.issued(Certificate("ingest", 1, NOW_S + DAY_S), NOW_S)
    made = (
        made.enrolled("s/gone", (), ()).issued(Certificate("s/gone", 2, NOW_S + DAY_S), NOW_S).revoked("s/gone", NOW_S)
    )
    assert made.warnings(NOW_S, NOW_S + YEAR_S + 1) == [
        "ingest: its certificate ends in 1 days; renew it with `enrol ingest`",
        "s/old: its certificate has ended; renew it with `enrol gateway`",
        "s/soon: its certificate ends in 5 days; renew it with `enrol gateway`",
    ]
    [text] = Register().warnings(NOW_S, NOW_S + YEAR_S)
    assert text.startswith("the authority ends in 365 days")


def test_the_ingest_learns_who_may_publish_which_streams():
    """None is any stream."""
    made = Register().enrolled("s/a", ("dock/+", "x"), ()).enrolled("s/b", (), ()).revoked("s/b", NOW_S)
    assert json.loads(gateways_json(made)) == {
        "gateways": {"s/a": {"streams": ["dock/+", "x"], "revoked": False}, "s/b": {"streams": None, "revoked": True}}
    }


def test_access_rules_name_members_of_groups_and_revoked_gateways_only():
    """Everybody else is covered by the patterns."""
    made = register(a="x", b="x", c="y", d="z").revoked("s/d", NOW_S)
    lines = access(made).splitlines()
    users = [line for line in lines if line.startswith("user ")]
    assert users == ["user ingest", "user publisher", "user s/a", "user s/b", "user s/d"]
    assert [line for line in lines if "/s/" in line] == [
        f"topic read wa/2/s/{peer}/{leaf}" for peer in "ba" for leaf in ("birth", "status", "state")
    ]
    assert lines[lines.index("user s/d") + 1] == "topic deny wa/#"


def test_the_configuration_names_every_file_by_its_whole_path():
    """So that mosquitto starts from any folder; without an address it listens on all."""
    text = configuration("/etc/wa/broker", 8883, None, "mosquitto")
    for line in text.splitlines():
        if "/" in line and not line.startswith("#"):
            assert line.split(" ", 1)[1].startswith("/etc/wa/broker/")
    assert "\nlistener 8883\n" in text
    assert "\nlistener 8883 ::1\n" in configuration("/x", 8883, "::1", "u")
