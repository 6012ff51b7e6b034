"""Who may ask: hosts, origins, tokens and passwords, over TLS where it matters."""

import base64

import pytest

from support.browser.certificate import self_signed
from support.browser.served import board_over, in_thread
from whenabouts_cloud.dashboard.server import access
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.access import HEADERS, MAX_ADDRESSES, MOST_WRONG, WINDOW_S, Logins, WrongLogins
from whenabouts_cloud.dashboard.server.app import Guard, site_of

TOKEN = b"0123456789abcdef"


def basic(text: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def plain():
    """A dashboard without a login."""
    with in_thread(site_of(board_over(), About("/landing"), Guard())) as made:
        yield made


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A certificate of 127.0.0.1, its key, and a context that trusts it."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def quick(monkeypatch):
    """Wrong logins are answered at once."""
    monkeypatch.setattr(access, "WRONG_S", 0.0)


@pytest.fixture
def with_token(tls, quick):
    """A dashboard that wants a token, by TLS, at any name."""
    with in_thread(site_of(board_over(), About("/landing"), Guard(None, Logins(TOKEN), True)), tls=tls) as made:
        yield made


@pytest.fixture
def with_users(tls, quick):
    """A dashboard that wants a user with a password."""
    logins = Logins(None, [b"ada:enchantress", "bo:grüße an alle".encode()])
    with in_thread(site_of(board_over(), About("/landing"), Guard(None, logins, True)), tls=tls) as made:
        yield made


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [("GET", "/", {}), ("GET", "/healthz", {}), ("GET", "/api/overview", {}), ("GET", "/nothing", {}),
     ("PUT", "/api/overview", {}), ("GET", "/api/timeline", {}), ("GET", "/", {"Host": "evil.example"}),
     ("POST", "/api/check", {}), ("OPTIONS", "/api/check", {})],
)  # fmt: skip
def test_every_response_tells_the_browser_to_load_nothing_from_elsewhere(plain, method, path, headers):
    """Errors, too; and no response names the server's software."""
    found = plain.get(path, headers, method).headers
    for name in HEADERS.keys() - {"cache-control"}:
        assert found[name] == HEADERS[name]
    assert "cache-control" in found
    assert "server" not in found


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]:8080", "127.0.0.1:99"])
def test_a_host_of_loopback_is_answered(plain, host):
    """At any port, as a tunnel may have another one."""
    assert plain.get("/api/overview", {"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "127.0.0.2", "[::2]", "[", "",
     "localhost@evil.example", "2130706433", "localhost,evil.example"],
)  # fmt: skip
def test_a_name_that_was_made_to_point_here_is_refused(plain, host):
    """The page of a stranger may have a name whose address becomes that of loopback; its requests bear that name."""
    answer = plain.get("/api/overview", {"Host": host})
    assert answer.status in (400, 421)
    assert b"landing" not in answer.body


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Origin": "file://"},
     {"Origin": "http://localhost:1"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
)  # fmt: skip
def test_the_page_of_a_stranger_is_refused(plain, headers):
    """It can neither ask nor start anything."""
    assert plain.post("/api/check", {"text": ""}, headers).status == 403
    assert plain.get("/api/overview", headers).status == 403


def test_the_own_page_is_answered(plain):
    """As a browser sends it."""
    own = {"Origin": plain.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert plain.post("/api/check", {"text": "RULE"}, own).json["ok"] is False


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_is_refused(plain, kind):
    """It is what other pages can send unasked."""
    assert plain.get("/api/check", {"Content-Type": kind}, "POST", b'{"text": ""}').status == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"])
def test_other_methods_are_refused(plain, method):
    """Also of paths that can be asked by GET and POST."""
    for path in ("/", "/api/overview", "/api/check", "/api/news"):
        assert plain.get(path, {}, method).status == 405


def test_without_the_token_only_the_health_is_told(with_token):
    """The page's files are not."""
    assert with_token.get("/healthz").status == 200
    for path in ("/", "/page/index.html", "/api/overview", "/api/news", "/nothing", "/healthz/", "//healthz"):
        answer = with_token.get(path)
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert b"landing" not in answer.body


def test_the_token_lets_programs_in(with_token):
    """In the header."""
    assert with_token.get("/api/overview", bearer(TOKEN.decode())).json["landing"] == "/landing"


@pytest.mark.parametrize(
    "headers",
    [bearer("0123456789abcdeF"), bearer(""), bearer(TOKEN.decode()[:-1]), bearer(TOKEN.decode() + "x"),
     bearer("x" * 5000), {"Authorization": "Bearer"}, {"Authorization": "Basic !"}, {"Authorization": "Digest x"},
     basic(f"a:{TOKEN.decode()}"), {"Cookie": "whenabouts=" + TOKEN.decode()}, {"Cookie": "whenabouts=\xe9; ;=,"},
     {"Cookie": "whenabouts="}],
)  # fmt: skip
def test_a_wrong_token_lets_nobody_in(with_token, headers):
    """Nor does the right one in the wrong place."""
    assert with_token.get("/api/overview", headers).status == 401


def test_a_link_with_the_token_lets_a_browser_in_and_hides_it(with_token):
    """It is kept as a cookie that scripts cannot read, and vanishes from the address."""
    answer = with_token.get(f"/?token={TOKEN.decode()}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie, *rules = answer.headers["set-cookie"].split("; ")
    assert {rule.lower() for rule in rules} == {"httponly", "secure", "samesite=strict", "path=/"}
    assert TOKEN.decode() not in cookie
    assert with_token.get("/api/overview", {"Cookie": f"other=1; {cookie}"}).status == 200
    assert with_token.get("/?token=wrong").status == 401
    assert with_token.get(f"/api/overview?token={TOKEN.decode()}").status == 401


def test_the_cookie_outlives_the_server():
    """It is a function of the token: a page connects again after a restart, and no longer after a new token."""
    first, again, other = Logins(TOKEN), Logins(TOKEN), Logins(b"another token of letters")
    assert again.accepts_session(first.session)
    assert not other.accepts_session(first.session)


def test_a_user_enters_with_the_password(with_users):
    """Each with the own one; letters may be any."""
    assert with_users.get("/", basic("ada:enchantress")).status == 200
    assert with_users.get("/", basic("bo:grüße an alle")).status == 200
    for wrong in ("ada:grüße an alle", "ada", ":", "ada:", "enchantress", "ada:enchantress "):
        answer = with_users.get("/", basic(wrong))
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
    assert with_users.get("/", bearer("enchantress")).status == 401
    assert with_users.get("/", {"Cookie": "whenabouts=None"}).status == 401
    assert with_users.get("/", {"Cookie": "whenabouts="}).status == 401


def test_many_wrong_logins_close_the_door_for_a_while(with_token):
    """The right one is not looked at either, as it could be the guess that hits; who is in stays in."""
    cookie = with_token.get(f"/?token={TOKEN.decode()}").headers["set-cookie"].split(";")[0]
    for _ in range(MOST_WRONG):
        assert with_token.get("/", bearer("wrong")).status == 401
    answer = with_token.get("/", bearer(TOKEN.decode()))
    assert (answer.status, answer.headers["retry-after"]) == (429, "60")
    assert with_token.get("/", {"Cookie": cookie}).status == 200


def test_wrong_logins_are_forgotten_in_time():
    """Each after WINDOW_S; and the oldest address when there are too many."""
    now_s = [0.0]
    wrong = WrongLogins(lambda: now_s[0])
    for _ in range(MOST_WRONG):
        wrong.add("a")
    assert wrong.too_many("a")
    assert not wrong.too_many("b")
    now_s[0] = WINDOW_S
    assert not wrong.too_many("a")
    now_s[0] = 0.0
    for n in range(MAX_ADDRESSES):
        wrong.add(f"other {n}")
    assert not wrong.too_many("a")
