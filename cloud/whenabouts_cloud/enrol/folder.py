"""The authority's folder: read and changed by one command at a time. Every other file is made from its register.

ca.crt, ca.key     the authority; the key is readable by its owner only, and encrypted if a passphrase was given
register.json      what was issued and revoked, to whom
crl.pem            revoked certificates, for brokers
gateways.json      who may publish which streams, for `ingest --gateways`
"""

import contextlib
import fcntl
import os
import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path

from whenabouts_cloud.durable import write_durably
from whenabouts_cloud.enrol.authority import Authority, Issued, ends_in, identity_in, new_authority, read_authority
from whenabouts_cloud.enrol.mosquitto import ACCESS, CONFIGURATION, SESSIONS, access, configuration
from whenabouts_cloud.enrol.names import BROKER, EnrolError, shown
from whenabouts_cloud.enrol.register import Broker, Certificate, Register, decode, encode, gateways_json

PRIVATE_FILE, PUBLIC_FILE, PRIVATE_FOLDER = 0o600, 0o644, 0o700
CERTIFICATE, KEY, REGISTER, REVOKED, GATEWAYS = "ca.crt", "ca.key", "register.json", "crl.pem", "gateways.json"
SERVER_CERTIFICATE, SERVER_KEY = "server.crt", "server.key"
CLIENT_CERTIFICATE, CLIENT_KEY = "client.crt", "client.key"
DAEMON = "mosquitto"  # the user that mosquitto becomes on most systems


class AuthorityFolder:
    """An open folder: what it holds, and changes to it. `unreachable`: broker's folders that could not be written."""

    def __init__(self, folder: Path, authority: Authority, register: Register) -> None:
        self.folder, self.authority, self.register = folder, authority, register
        self.unreachable: list[str] = []

    def enrol_client(self, identity: str, out: Path, now_s: int, days: int, replaces: bool = False) -> Issued:
        """Give a client ca.crt, client.crt and client.key. replaces: its earlier certificates are revoked.

        The register knows the certificate before anybody has it. client.crt is written last: who waits for a new one finds
        its key beside it.

        Raises:
            EnrolError: `out` holds the certificate of somebody else, or the authority has ended.
            OSError: a file cannot be written.
        """
        _require_own(out, identity)
        if replaces:
            self.register = self.register.withdrawn(identity, now_s)
        issued = self._issue(identity, now_s, days)
        _private_folder(out)
        write_durably(out / CLIENT_KEY, issued.key, PRIVATE_FILE)
        write_durably(out / CERTIFICATE, self.authority.pem, PUBLIC_FILE)
        write_durably(out / CLIENT_CERTIFICATE, issued.certificate, PUBLIC_FILE)
        return issued

    def enrol_broker(
        self, out: Path, hosts: Sequence[str], port: int, now_s: int, days: int, bind: str | None = None,
        user: str | None = None,
    ) -> tuple[Issued, str]:  # fmt: skip
        """Write all files that mosquitto needs; returns also the user that it becomes when root starts it.

        Raises:
            EnrolError: as `enrol_client`; or mosquitto's configuration cannot hold the path, or there is no such user.
            OSError: a file cannot be written.
        """
        out = out.resolve()
        if not str(out).isprintable() or str(out) != str(out).strip():
            raise EnrolError(
                f"--out: found {str(out)!a}, expected a path without control characters or spaces at its ends"
            )
        _require_own(out, BROKER)
        owner = _broker_folder(out, user)
        issued = self._issue(BROKER, now_s, days, hosts)
        files = {
            SERVER_KEY: (issued.key, PRIVATE_FILE),
            CERTIFICATE: (self.authority.pem, PUBLIC_FILE),
            SERVER_CERTIFICATE: (issued.certificate, PUBLIC_FILE),
            CONFIGURATION: (configuration(str(out), port, bind, owner).encode(), PUBLIC_FILE),
        }
        for name, (data, mode) in files.items():
            _write_as(owner, out / name, data, mode)
        self.register = self.register.with_broker(Broker(str(out), hosts[0], port))
        self.save(now_s)
        return issued, owner

    def _issue(self, identity: str, now_s: int, days: int, hosts: Sequence[str] = ()) -> Issued:
        issued = self.authority.issue(identity, now_s, days, hosts)
        self.register = self.register.issued(Certificate(identity, issued.serial, issued.ends_s), now_s)
        self.save(now_s)
        return issued

    def save(self, now_s: int) -> None:
        """Write the register, then all that follows from it: a command that was killed in between can be repeated."""
        revoked = self.authority.revocations(self.register.revocations(), now_s)
        write_durably(self.folder / REGISTER, encode(self.register), PRIVATE_FILE)
        write_durably(self.folder / REVOKED, revoked)
        write_durably(self.folder / GATEWAYS, gateways_json(self.register))
        rules = access(self.register).encode()
        self.unreachable = []
        for broker in self.register.brokers:
            where = Path(broker.folder)
            try:
                owner = _owner(where / SERVER_KEY)
                _write_as(owner, where / REVOKED, revoked, PUBLIC_FILE)
                _write_as(owner, where / ACCESS, rules, PRIVATE_FILE)
            except OSError as error:
                self.unreachable.append(f"{where}: {error.strerror}")


def create(folder: Path, passphrase: bytes | None, now_s: int) -> None:
    """Make a new authority in a folder, which is made if missing.

    Raises:
        EnrolError: there is one, or a part of one.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    with _locked(folder):
        for name in (KEY, CERTIFICATE, REGISTER):
            if (folder / name).exists():
                raise EnrolError(
                    f"{folder}: found {name}, expected no authority; an existing one is never replaced: take another folder"
                )
        authority = new_authority(now_s)
        write_durably(folder / KEY, authority.key_pem(passphrase), PRIVATE_FILE)
        write_durably(folder / CERTIFICATE, authority.pem)
        AuthorityFolder(folder, authority, Register()).save(now_s)


@contextlib.contextmanager
def opened(folder: Path, passphrase: bytes | None) -> Iterator[AuthorityFolder]:
    """Open the authority; another command waits until the block ends.

    Raises:
        EnrolError: there is none, it is damaged, or the passphrase is wrong.
    """
    register = _file(folder, REGISTER)  # before the lock, which would make a file in any folder
    with _locked(folder):
        authority = read_authority(_file(folder, CERTIFICATE), _file(folder, KEY), passphrase)
        register = _file(folder, REGISTER)
        yield AuthorityFolder(folder, authority, decode(register))


def registered(folder: Path) -> tuple[Register, int]:
    """The register and the authority's end, which need no key and no lock. Raises EnrolError as `opened` does."""
    try:
        return decode(_file(folder, REGISTER)), ends_in(_file(folder, CERTIFICATE))
    except ValueError as error:
        raise EnrolError(f"{folder / CERTIFICATE}: found {error}, expected the authority's certificate") from None


def write_public(path: Path, data: bytes) -> None:
    """Write a file that everybody may read. Raises OSError."""
    write_durably(path, data, PUBLIC_FILE)


def _require_own(out: Path, identity: str) -> None:
    """Refuse a folder with the certificate of somebody else.

    Raises:
        EnrolError: there is one; --out is probably a mistake.
    """
    for name in (CLIENT_CERTIFICATE, SERVER_CERTIFICATE):
        path = out / name
        other = identity_in(path.read_bytes()) if path.exists() else identity
        if other != identity:
            raise EnrolError(
                f"{path}: found the certificate of {shown(other or 'nobody')}, expected none or that of {shown(identity)}; "
                "give each its own --out"
            )


def _private_folder(out: Path) -> None:
    """Make a folder that only its owner can enter, unless it exists. Raises OSError."""
    out.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)


def _broker_folder(out: Path, user: str | None) -> str:
    """Make the folder and the one of sessions; returns the user to whom the files belong."""
    is_new = not out.exists()
    _private_folder(out)
    owner = user or (_owner(out / SERVER_KEY) if (out / SERVER_KEY).exists() else _daemon(out, is_new))
    for folder in (out, out / SESSIONS) if is_new else (out / SESSIONS,):
        _private_folder(folder)
        _give(folder, owner)
    return owner


def _daemon(out: Path, is_new: bool) -> str:
    """mosquitto's own user if root makes the folder and this user can enter it; else the user who makes it."""
    if os.geteuid() == 0:
        with contextlib.suppress(KeyError):
            daemon = pwd.getpwnam(DAEMON)
            if all(_may_enter(folder, daemon) for folder in (*out.parents, *(() if is_new else (out,)))):
                return DAEMON
    return pwd.getpwuid(os.geteuid()).pw_name


def _may_enter(folder: Path, user: pwd.struct_passwd) -> bool:
    status = folder.stat()
    if status.st_uid == user.pw_uid:
        return bool(status.st_mode & 0o100)
    return bool(status.st_mode & (0o010 if status.st_gid == user.pw_gid else 0o001))


def _owner(path: Path) -> str:
    return pwd.getpwuid(path.stat().st_uid).pw_name


def _give(path: Path, user: str) -> None:
    """Give a file or a folder to a user; without effect for its owner."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise EnrolError(
            f"--user: found no user {user!a} on this machine, expected the one that mosquitto runs as"
        ) from None
    if path.stat().st_uid != entry.pw_uid:
        os.chown(path, entry.pw_uid, entry.pw_gid)


def _write_as(owner: str, path: Path, data: bytes, mode: int) -> None:
    """Write a file and give it to this user. Raises OSError."""
    write_durably(path, data, mode)
    _give(path, owner)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for other commands that change this authority, and keep them waiting. Raises OSError."""
    descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _file(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise EnrolError(
            f"{folder / name}: {error.strerror}; expected an authority in this folder: `enrol init --dir {folder}` makes one"
        ) from None
