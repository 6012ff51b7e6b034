"""The certificate that a board shows its broker: where it goes, what is refused, and that its key is never shown."""

import base64
import json
import ssl
import subprocess

import pytest

from support.edge.tls_broker import make_certificates, tls_broker
from unit.flash.test_provision import FINE, made, mistakes
from whenabouts_edge.flash import FlashError, first_heartbeat
from whenabouts_edge.flash.first_heartbeat import FirstHeartbeatWatch
from whenabouts_edge.flash.identity import show
from whenabouts_edge.flash.plan import contents

CERTIFIED = FINE.replace("[board]", 'ca_file = "ca.pem"\ncert_file = "client.pem"\nkey_file = "client.key"\n[board]')


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """A folder with certificates and keys."""
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def test_what_a_board_shows_its_broker_goes_along_in_der(certified):
    """The key is in no text that is shown, and the computer that flashes can show it too."""
    provisioned = made(CERTIFIED, read=lambda name: (certified / name).read_bytes())
    broker, files = provisioned.config["broker"], provisioned.files
    assert (broker["cert_file"], broker["key_file"]) == ("/cert.der", "/key.der")
    assert ssl.DER_cert_to_PEM_cert(files["/cert.der"]).split() == (certified / "client.pem").read_text().split()
    assert base64.b64encode(files["/key.der"])[:48].decode() in (certified / "client.key").read_text()
    assert [file.path for file in contents({}, b"{}", files) if file.secret] == ["/key.der", "/board.json"]
    assert "PRIVATE" not in repr(provisioned) + json.dumps(provisioned.shown())
    assert repr(files["/key.der"])[2:20] not in repr(provisioned)
    show(ssl.create_default_context(), provisioned.identity)


@pytest.mark.parametrize("wrong", ["another key", "a passphrase", "no key", "no certificate"])
def test_a_certificate_that_a_board_could_not_show_is_a_mistake(certified, wrong, tmp_path):
    """Found before anything is written to a board, and nobody is asked for a passphrase."""
    files = {name: (certified / name).read_bytes() for name in ("ca.pem", "client.pem", "client.key")}
    if wrong == "another key":
        files["client.key"] = (certified / "other.key").read_bytes()
    elif wrong == "a passphrase":
        words = ["openssl", "pkey", "-in", certified / "client.key", "-aes256", "-passout", "pass:secret"]
        files["client.key"] = subprocess.run(words, check=True, capture_output=True).stdout
    else:
        files["client.key" if wrong == "no key" else "client.pem"] = b"nothing"
    [mistake] = mistakes(CERTIFIED, read=files.__getitem__)
    assert mistake.startswith("edge.toml:6: [broker] cert_file, key_file: found ")
    assert mistake.endswith("expected a certificate and its key in PEM, without a passphrase")


def test_of_several_certificates_the_first_goes_along(certified):
    """A board can show one."""
    chain = (certified / "client.pem").read_bytes() + (certified / "ca.pem").read_bytes()
    provisioned = made(CERTIFIED, read=lambda name: chain if name == "client.pem" else (certified / name).read_bytes())
    assert provisioned.files["/cert.der"] == ssl.PEM_cert_to_DER_cert((certified / "client.pem").read_text())
    assert provisioned.notes == (
        "[broker] cert_file: only its first certificate is copied; the broker must know the others",
    )


def test_the_wait_for_the_heartbeat_shows_the_board_s_identity(tmp_path, monkeypatch):
    """A broker that lets in nobody else; without a certificate it hangs up."""
    monkeypatch.setattr(first_heartbeat, "CONNECT_S", 3)
    with tls_broker(tmp_path) as broker:
        values = {"site": "s", "gateway": "g", "build": "b", "broker": {"host": "localhost", "port": broker.mutual}}
        ca, identity = broker.ca.read_bytes(), broker.cert.read_bytes() + broker.key.read_bytes()
        with FirstHeartbeatWatch(values, ca, identity) as arrival:
            assert arrival.before() == set()
        with pytest.raises(FlashError, match=r"localhost:\d+: found .*, expected a connection"):
            FirstHeartbeatWatch(values, ca)
