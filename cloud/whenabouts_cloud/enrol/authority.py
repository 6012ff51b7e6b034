"""An authority as a value: it signs certificates and lists of revoked ones. All keys are EC P-256, which boards know too.

Times are UTC in whole seconds since 1970. Certificates begin a day before they are made, for machines whose clock is behind.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from whenabouts_cloud.enrol.names import EnrolError

DAY_S = 86400
AUTHORITY_DAYS = 3652  # ten years
BACKDATED_S = DAY_S


@dataclass(frozen=True, slots=True)
class Issued:
    """A new certificate with its key, both PEM."""

    certificate: bytes
    key: bytes
    serial: int
    ends_s: int


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate that all others are checked with, and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def ends_s(self) -> int:
        """End of the authority; nothing that it has signed is valid longer."""
        return int(self.certificate.not_valid_after_utc.timestamp())

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM)

    def key_pem(self, passphrase: bytes | None) -> bytes:
        """The key as PEM, encrypted if there is a passphrase."""
        return _key_pem(self.key, passphrase)

    def issue(self, identity: str, now_s: int, days: int, hosts: Sequence[str] = ()) -> Issued:
        """Make a key and sign a certificate for it: of a server with these names and addresses, or of a client without.

        Raises:
            EnrolError: the authority has ended.
        """
        ends_s = min(now_s + days * DAY_S, self.ends_s)
        if ends_s <= now_s:
            raise EnrolError(
                f"the authority ended on {day(self.ends_s)}; make a new one with `enrol init` in another folder"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(key, identity, now_s - BACKDATED_S, ends_s)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        made = builder.sign(self.key, hashes.SHA256())
        return Issued(made.public_bytes(Encoding.PEM), _key_pem(key, None), made.serial_number, ends_s)

    def revocations(self, revoked: Mapping[int, int], now_s: int) -> bytes:
        """The list of revoked certificates as PEM, from serial numbers and the times of their revocation.

        Valid as long as the authority: brokers refuse everybody once a list has ended.
        """
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(_time(now_s - BACKDATED_S))
            .next_update(_time(max(self.ends_s, now_s)))
            .add_extension(x509.CRLNumber(now_s), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        for serial, at_s in sorted(revoked.items()):
            one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(_time(at_s))
            builder = builder.add_revoked_certificate(one.build())
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def new_authority(now_s: int) -> Authority:
    """Make an authority that signs certificates of its own only, and none of other authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(key, "Whenabouts authority", now_s - BACKDATED_S, now_s + AUTHORITY_DAYS * DAY_S)
        .issuer_name(_name("Whenabouts authority"))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signature=False), critical=True)
    )
    return Authority(builder.sign(key, hashes.SHA256()), key)


def read_authority(certificate: bytes, key: bytes, passphrase: bytes | None) -> Authority:
    """The authority of two PEM files.

    Raises:
        EnrolError: they are damaged or do not belong together, or the passphrase is missing or wrong.
    """
    try:
        made = x509.load_pem_x509_certificate(certificate)
        private = load_pem_private_key(key, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise EnrolError(
            f"the authority's key or certificate: found {error}; expected both as `enrol init` wrote them, and "
            "--passphrase-file exactly if the key has one"
        ) from None
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.public_key() != made.public_key():
        raise EnrolError("the authority's key: found the key of another certificate, expected the one beside ca.crt")
    return Authority(made, private)


def identity_in(certificate: bytes) -> str | None:
    """The common name of a PEM certificate, None if it is none or has none."""
    try:
        names = x509.load_pem_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return None
    return str(names[0].value) if names else None


def ends_in(certificate: bytes) -> int:
    """The end of a PEM certificate. Raises ValueError when it is none."""
    return int(x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp())


def day(at_s: int) -> str:
    """A date for people, UTC."""
    return f"{_time(at_s):%Y-%m-%d}"


def _builder(key: ec.EllipticCurvePrivateKey, name: str, begins_s: int, ends_s: int) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_time(begins_s))
        .not_valid_after(_time(ends_s))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(signature: bool) -> x509.KeyUsage:
    """What a key is for: signatures of a connection, or of certificates and lists of revoked ones."""
    return x509.KeyUsage(
        digital_signature=signature, key_cert_sign=not signature, crl_sign=not signature, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode("ascii")
    except ValueError:
        name = ""
    if not name:
        raise EnrolError(f"--host: found {host!a}, expected a name such as broker.example or an address")
    return x509.DNSName(name)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _time(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def _key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None) -> bytes:
    encryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
