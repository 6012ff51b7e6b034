"""The authority: what its certificates are for, how long, and which keys open it."""

import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from whenabouts_cloud.enrol.authority import (
    AUTHORITY_DAYS,
    BACKDATED_S,
    DAY_S,
    Authority,
    identity_in,
    new_authority,
    read_authority,
)
from whenabouts_cloud.enrol.names import EnrolError
from whenabouts_edge.flash.identity import der

NOW_S = 1_790_000_000


@pytest.fixture(scope="module")
def authority() -> Authority:
    return new_authority(NOW_S)


def purposes(pem: bytes) -> list[object]:
    return list(x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_a_client_is_no_server_and_a_server_no_client(authority):
    """A certificate has one purpose, and cannot sign others."""
    client, server = authority.issue("s/a", NOW_S, 1), authority.issue("broker", NOW_S, 1, ["localhost", "::1"])
    assert purposes(client.certificate) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert purposes(server.certificate) == [ExtendedKeyUsageOID.SERVER_AUTH]
    for pem in (client.certificate, server.certificate):
        made = x509.load_pem_x509_certificate(pem)
        assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        made.verify_directly_issued_by(authority.certificate)


def test_the_name_is_the_identity(authority):
    """Also with letters of any script; something that is no certificate has none."""
    assert identity_in(authority.issue("sité/日本", NOW_S, 1).certificate) == "sité/日本"
    assert identity_in(b"no certificate") is None


def test_validity(authority):
    """From a day ago for so many days, at most as long as the authority, and never from an authority that has ended."""
    issued = authority.issue("s/a", NOW_S, 365)
    made = x509.load_pem_x509_certificate(issued.certificate)
    assert made.not_valid_before_utc.timestamp() == NOW_S - BACKDATED_S
    assert made.not_valid_after_utc.timestamp() == issued.ends_s == NOW_S + 365 * DAY_S
    assert authority.issue("s/a", NOW_S + DAY_S, AUTHORITY_DAYS).ends_s == authority.ends_s
    with pytest.raises(EnrolError, match="enrol init"):
        authority.issue("s/a", authority.ends_s, 1)


def test_revoked_certificates_are_listed_as_long_as_the_authority_is_valid(authority):
    """A list that ended would make brokers refuse everybody."""
    listed = x509.load_pem_x509_crl(authority.revocations({7: NOW_S, 9: NOW_S + 1}, NOW_S + 2))
    assert listed.next_update_utc.timestamp() == authority.ends_s
    assert listed.is_signature_valid(authority.key.public_key())
    assert {one.serial_number for one in listed} == {7, 9}


def test_a_key_opens_with_its_passphrase_only(authority):
    """Wrong, missing and needless passphrases, other keys and damaged files are refused with what was found."""
    locked, plain = authority.key_pem(b"open sesame"), authority.key_pem(None)
    assert read_authority(authority.pem, locked, b"open sesame").certificate == authority.certificate
    assert b"ENCRYPTED" in locked
    other = new_authority(NOW_S).key_pem(None)
    for key, passphrase in (
        (locked, b"wrong"),
        (locked, None),
        (plain, b"needless"),
        (other, None),
        (b"damaged", None),
    ):
        with pytest.raises(EnrolError, match="the authority's key"):
            read_authority(authority.pem, key, passphrase)
    with pytest.raises(EnrolError, match="the authority's key or certificate"):
        read_authority(b"damaged", plain, None)


def test_boards_and_this_machine_take_the_files(authority, tmp_path):
    """`flash` makes DER of them, and OpenSSL loads certificate and key."""
    issued = authority.issue("s/board", NOW_S, 1)
    certificate, key = der(issued.certificate, issued.key)
    assert certificate[0] == key[0] == 0x30
    assert isinstance(x509.load_der_x509_certificate(certificate).public_key(), ec.EllipticCurvePublicKey)
    (tmp_path / "ca").write_bytes(authority.pem)
    ssl.create_default_context(cafile=str(tmp_path / "ca"))


@pytest.mark.parametrize("host", ["", "a" * 64, "a..b"])
def test_a_host_that_is_no_name_is_refused(authority, host):
    """With what was expected."""
    with pytest.raises(EnrolError, match="--host: found"):
        authority.issue("broker", NOW_S, 1, [host])
