"""A board's line with TLS to a real broker, here and on the MicroPython VM: only to a server with the right certificate."""

import ipaddress
import json

import pytest

from support.board.micropython import run_on_board
from support.board.scripts import as_module
from support.board.site import TimeServer, board_config, start_board
from support.edge.agent import Bench, badges, passed, witness
from support.edge.tls_broker import tls_broker
from support.paths import REPOSITORY
from whenabouts_edge.board.machine.tls import certificates
from whenabouts_edge.flash.identity import der
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.world.world import GATE

SCRIPT = REPOSITORY / "tests/micropython/board_tls.py"
WHERE = ["here", "board"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with tls_broker(tmp_path_factory.mktemp("tls")) as made:
        yield made


def outcome(where, host, port, *files):
    """Lines that the script reports."""
    if where == "board":
        return run_on_board(SCRIPT, host, str(port), *map(str, files), heap="1m").splitlines()
    here = as_module(SCRIPT)
    return here.run(host, port, *map(str, files))


@pytest.mark.parametrize("where", WHERE)
def test_a_server_with_the_right_certificate_is_believed(broker, where):
    """A message of two kilobytes goes out and comes back, and nothing waits for the handshake."""
    assert outcome(where, "localhost", broker.tls, broker.ca) == [
        "connected", "heard whole", "asked again and again",
    ]  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("wrong", ["another authority", "another name", "no TLS", "no certificate in the file"])
def test_any_other_is_refused_with_a_reason(broker, where, wrong, tmp_path):
    """No MQTT packet reaches such a server."""
    host, port, ca_file = "localhost", broker.tls, broker.ca
    if wrong == "another authority":
        ca_file = broker.other_ca
    elif wrong == "another name":
        host = str(ipaddress.IPv4Address(0x7F000001))
    elif wrong == "no TLS":
        port = broker.plain
    else:
        ca_file = tmp_path / "empty.pem"
        ca_file.write_text("no certificate\n")
    lines = outcome(where, host, port, ca_file)
    assert "connected" not in lines
    if wrong == "no certificate in the file":
        assert lines == ["no line: ca_file: found no certificate, expected PEM"]
    elif wrong == "no TLS":  # a plain broker hangs up on the first packet
        assert lines[-1] == "closed" or lines[0].startswith("refused: ")
    else:
        assert lines[0].startswith("refused: ")


def shown(where, folder, cert, key):
    """The files as this machine reads them."""
    if where == "here":
        return cert, key
    for name, data in zip(("cert.der", "key.der"), der(cert.read_bytes(), key.read_bytes()), strict=True):
        (folder / name).write_bytes(data)
    return folder / "cert.der", folder / "key.der"


@pytest.mark.parametrize("where", WHERE)
def test_a_server_that_asks_for_a_certificate_gets_it(broker, where, tmp_path):
    """The server accepts a board only with the certificate; a key of another certificate is refused here."""
    files = shown(where, tmp_path, broker.cert, broker.key)
    assert "heard whole" in outcome(where, "localhost", broker.mutual, broker.ca, *files)
    lines = outcome(where, "localhost", broker.mutual, broker.ca)
    assert "connected" not in lines
    (tmp_path / "none").write_bytes(b"no key")
    [line] = outcome(where, "localhost", broker.mutual, broker.ca, files[0], tmp_path / "none")
    assert line.startswith("no line: ")


def test_all_certificates_of_a_file_are_read(broker):
    """Certificates are read whatever text stands around them."""
    both = f"first\n{broker.ca.read_text()}\nsecond\r\n{broker.other_ca.read_text()}"
    assert len(certificates(both)) == 2
    assert certificates(both)[0] == certificates(broker.ca.read_text())[0] != certificates(both)[1]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("mutual", [False, True])
def test_readings_go_out_over_tls(broker, where, mutual, tmp_path):
    """The whole agent: it waits for the time, as certificates have dates, then it connects and publishes."""
    with Bench(tmp_path) as bench:
        ports = bench.folder / "ports" / "gate"
        config = {"host": "localhost", "port": broker.tls, "keepalive_s": 10, "ca_file": str(broker.ca)}
        if mutual:
            cert_file, key_file = map(str, shown(where, tmp_path, broker.cert, broker.key))
            config |= {"port": broker.mutual, "cert_file": cert_file, "key_file": key_file}
        with (
            PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, ports) as gate,
            TimeServer(bench.sim_clock) as ntp,
            witness(broker.plain) as seen,
        ):
            reader = {"port": str(ports), "kind": "rdm6300", "stream": "gate/tags"}
            path = board_config(bench, ntp.port, [reader], broker=config)
            assert json.loads(path.read_text())["broker"] == config
            start_board(bench, path, where)
            seen.wait("a watermark", lambda: any(b.frontier_us for b in seen.heartbeats()), 60)
            keys = passed(bench, gate, badges(bench, 6, 0))
            seen.wait("badges", lambda: seen.keys() >= keys)
