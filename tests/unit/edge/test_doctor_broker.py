"""How far the doctor comes with a broker: real ones, with passwords and TLS, and what is none."""

import socket
import threading
from dataclasses import replace

import pytest

from support.edge.tls_broker import tls_broker
from whenabouts_edge.config.load import BrokerConfig
from whenabouts_edge.health import facts
from whenabouts_sim.stack.broker import free_port


def broker_config(port: int, **changes) -> BrokerConfig:
    return replace(BrokerConfig("127.0.0.1", port, "hall/g", None, None, None, None, None, 30, 30), **changes)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A broker that wants a name and a password, without and with TLS, and the folder with files of passwords."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "password").write_text("secret\n")
    (folder / "wrong").write_text("guess\n")
    with tls_broker(folder, {"dock-1": "secret"}) as broker:
        yield folder, broker


def test_a_real_broker_lets_in_whom_it_knows(guarded):
    """With name and password, by TLS or without; no name or a wrong password is refused, and reported as that."""
    folder, broker = guarded
    known = {"username": "dock-1", "password_file": str(folder / "password")}
    assert facts.broker(broker_config(broker.plain, **known)).stage == "fine"
    of_tls = broker_config(broker.tls, host="localhost", ca_file=str(broker.ca), **known)
    assert (facts.broker(of_tls).stage, facts.broker(of_tls).tls) == ("fine", True)
    nameless = facts.broker(broker_config(broker.plain))
    assert (nameless.stage, nameless.problem) == ("login", "refused: Not authorized")
    guess = facts.broker(broker_config(broker.plain, username="dock-1", password_file=str(folder / "wrong")))
    assert guess.stage == "login"
    lost = facts.broker(broker_config(broker.plain, username="dock-1", password_file=str(folder / "gone")))
    assert (lost.stage, "gone" in lost.problem) == ("login", True)


def test_tls_that_does_not_fit_is_reported_as_such(guarded, tmp_path):
    """A name that the certificate does not have, TLS on a plain port, a plain greeting on a TLS port, no certificate."""
    _, broker = guarded
    ca_file = str(broker.ca)
    stranger = facts.broker(broker_config(broker.tls, ca_file=ca_file))  # 127.0.0.1 is not in the certificate
    assert stranger.stage == "tls"
    assert "127.0.0.1" in stranger.problem
    assert facts.broker(broker_config(broker.plain, host="localhost", ca_file=ca_file), 2).stage in (
        "tls",
        "connect",
    )
    assert facts.broker(broker_config(broker.tls), 2).stage == "mqtt"
    (tmp_path / "ca.pem").write_text("no certificate")
    assert facts.broker(broker_config(broker.tls, ca_file=str(tmp_path / "ca.pem"))).stage == "tls"
    assert facts.broker(broker_config(broker.tls, ca_file=str(tmp_path / "gone.pem"))).stage == "tls"


def test_nobody_listens_nobody_answers_nobody_is_called_that():
    """A closed port, a port that only accepts, a name that cannot exist (RFC 2606)."""
    assert facts.broker(broker_config(free_port())).stage == "connect"
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert facts.broker(broker_config(mute.getsockname()[1]), 0.5).stage == "mqtt"
    assert facts.broker(broker_config(1883, host="no-such-broker.invalid")).stage in ("name", "connect")


def test_the_doctor_does_not_disturb_a_running_agent_s_connection():
    """It uses a separate client id: a broker cuts the older of two connections with one id."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                came.append(connection.recv(200))
                connection.sendall(b"\x20\x02\x00\x00")
                connection.recv(200)

        thread = threading.Thread(target=answer)
        thread.start()
        assert facts.broker(broker_config(server.getsockname()[1])).stage == "fine"
        thread.join(10)
    assert b"hall/g-doctor" in came[0]
