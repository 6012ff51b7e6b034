"""`whenabouts_cloud.commands.dashboard.dashboard` as a process: its address, its end, its return after a kill, its doors."""

import json
import signal
import subprocess

import pytest

from support.browser.certificate import self_signed
from support.browser.served import COMMAND, LIMIT_S, Served, end, served
from support.child import environment
from support.cloud.landing import land, reading
from support.waiting import until

TOKEN = "correct-horse-battery"


@pytest.fixture
def landing(tmp_path):
    """A landing with a reading."""
    land(tmp_path / "landing", [reading("gw", 1, "dock/tags", "k", 1000, 2000)])
    return tmp_path / "landing"


def refused(*arguments):
    """What the command says when it does not start."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], env=environment(), capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_though_a_page_listens_to_its_news(landing, tmp_path, number):
    """Its exit code tells that all is well, and its log holds no error."""
    with served(landing, tmp_path) as dashboard, dashboard.news() as stream:
        assert stream.status == 200
        assert end(dashboard, number) in (0, 128 + number)
        assert "rror" not in dashboard.log.read_text()


def test_after_a_kill_it_serves_the_same_port_again(landing, tmp_path):
    """It keeps nothing that a sudden death could spoil, and needs no clean-up."""
    with served(landing, tmp_path) as dashboard:
        dashboard.process.kill()
        dashboard.process.wait()
        with served(landing, tmp_path, "--port", str(dashboard.port)) as again:
            assert again.port == dashboard.port
            assert again.get("/healthz").json == {"ok": True}


def test_a_port_in_use_is_named_with_what_to_do(landing, tmp_path):
    """Two dashboards may run, at two ports."""
    with served(landing, tmp_path) as dashboard:
        said = refused("--landing", landing, "--port", dashboard.port)
    assert f"--port {dashboard.port}: cannot listen at 127.0.0.1" in said
    assert "0 for a free one" in said


def test_a_landing_that_is_not_there_is_refused_with_what_to_do(tmp_path):
    """An empty page would look like an empty site."""
    assert "expected the folder that an ingest lands readings in" in refused("--landing", tmp_path / "landnig")


def test_an_address_that_others_reach_needs_tls_and_a_login(landing, tmp_path):
    """Neither alone is enough."""
    (tmp_path / "token").write_text(TOKEN)
    for options in ([], ["--token-file", tmp_path / "token"]):
        said = refused("--landing", landing, "--host", "0.0.0.0", "--port", 0, *options)
        assert "expected TLS and a login" in said


def test_with_tls_and_a_token_it_answers_those_who_know_the_token(landing, tmp_path):
    """Also at an address that others reach; the token is in no log."""
    certificate, key, context = self_signed(tmp_path)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    options = ["--serve-cert", str(certificate), "--serve-key", str(key), "--token-file", str(tmp_path / "token")]
    with served(landing, tmp_path, "--host", "0.0.0.0", *options, context=context) as found:
        assert found.get("/api/overview").status == 401
        assert found.get("/api/overview", {"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert TOKEN not in found.log.read_text()


def test_programs_can_read_its_address(landing):
    """--json prints it as an object."""
    process = subprocess.Popen(
        [*COMMAND, "--landing", str(landing), "--port", "0", "--json"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = json.loads(process.stdout.readline())["address"]
        assert address.startswith("http://127.0.0.1:")
        until(lambda: Served(address).get("/healthz").status == 200, "the dashboard to answer")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
