"""A mosquitto with a plain and a TLS port, and certificates that openssl made for it."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.waiting import until
from whenabouts_sim.stack.broker import find_mosquitto, free_port

START_S = 20


@dataclass
class TlsBroker:
    """plain, tls, mutual: ports; the last lets in clients with a certificate of the same authority. ca: certificate that
    signed the broker's, which is for `localhost`. other_ca: another one. cert, key: of a client, EC; other_key: of nobody.
    """

    plain: int
    tls: int
    ca: Path
    other_ca: Path
    mutual: int
    cert: Path
    key: Path
    other_key: Path


def _openssl(*arguments: object) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise FileNotFoundError("openssl: found none, expected the program; on Debian: apt-get install openssl")
    subprocess.run([program, *map(str, arguments)], check=True, capture_output=True)


def make_certificates(folder: Path) -> None:
    """ca.pem, other.pem; signed by the first server.pem for localhost and client.pem, with server.key and client.key."""
    for name in ("ca", "other"):
        _openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", f"/CN={name}",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
        )  # fmt: skip
    _openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", folder / "server.key",
        "-out", folder / "server.csr",
    )  # fmt: skip
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    _openssl(
        "x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
        "-CAcreateserial", "-days", 2, "-extfile", folder / "names", "-out", folder / "server.pem",
    )  # fmt: skip
    make_client(folder, "client")


def make_client(folder: Path, name: str, days: int = 2) -> None:
    """name.key and name.pem of a client, signed by ca.pem of that folder."""
    _openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
        "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr",
    )  # fmt: skip
    _openssl(
        "x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
        "-CAcreateserial", "-days", days, "-out", folder / f"{name}.pem",
    )  # fmt: skip


def _let_in(folder: Path, users: Mapping[str, str]) -> str:
    """Lines of configuration that let in these users with their passwords, or anyone if there are none."""
    if not users:
        return "allow_anonymous true\n"
    program = shutil.which("mosquitto_passwd")
    if program is None:
        raise FileNotFoundError("mosquitto_passwd: found none, expected the program that comes with mosquitto")
    (folder / "users").touch(0o600)
    for name, password in users.items():
        subprocess.run([program, "-b", folder / "users", name, password], check=True, capture_output=True)
    return f"allow_anonymous false\npassword_file {folder}/users\n"


@contextlib.contextmanager
def tls_broker(folder: Path, users: Mapping[str, str] | None = None) -> Iterator[TlsBroker]:
    """A broker that runs until the end of the block. users: passwords by name; without any it lets in anyone."""
    make_certificates(folder)
    plain, tls, mutual = free_port(), free_port(), free_port()
    served = f"certfile {folder}/server.pem\nkeyfile {folder}/server.key\n"
    lines = (
        f"{_let_in(folder, users or {})}listener {plain} 127.0.0.1\n"
        f"listener {tls} 127.0.0.1\n{served}"
        f"listener {mutual} 127.0.0.1\n{served}cafile {folder}/ca.pem\nrequire_certificate true\n"
    )
    with mosquitto(folder, lines, plain, tls, mutual):
        files = (folder / name for name in ("client.pem", "client.key", "other.key"))
        yield TlsBroker(plain, tls, folder / "ca.pem", folder / "other.pem", mutual, *files)


@contextlib.contextmanager
def mosquitto(folder: Path, lines: str, *ports: int) -> Iterator[subprocess.Popen[bytes]]:
    """A mosquitto with these lines of configuration, which open these ports, until the end of the block."""
    program = find_mosquitto()
    if program is None:
        raise FileNotFoundError("mosquitto: found none, expected the daemon; on Debian: apt-get install mosquitto")
    me = pwd.getpwuid(os.geteuid()).pw_name
    (folder / "m.conf").write_text(f"user {me}\n{lines}")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-c", folder / "m.conf"], stdout=log, stderr=log)
    try:
        for port in ports:

            def answers(port: int = port) -> bool:
                assert process.poll() is None, (folder / "log").read_text()
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    return True
                return False

            until(answers, lambda: "the broker\n" + (folder / "log").read_text(), START_S)
        yield process
    finally:
        process.terminate()
        process.wait(60)
