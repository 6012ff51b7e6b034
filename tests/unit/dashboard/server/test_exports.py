"""The timeline as files over HTTP."""

import pytest

from support.browser.known_run import BEGIN_US, SECOND_US, make
from support.browser.served import board_over, in_thread
from support.waiting import until
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.app import Guard, site_of
from whenabouts_cloud.dashboard.server.exports import PATHS

TIME = f"from={BEGIN_US}&to={BEGIN_US + 60 * SECOND_US}"
BEGINS = {"svg": b"<svg ", "png": b"\x89PNG", "csv": b"site,gateway", "parquet": b"PAR1"}


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    """A dashboard over the known run."""
    landing, _, _ = make(tmp_path_factory.mktemp("known"))
    with board_over(landing) as board, in_thread(site_of(board, About(str(landing)), Guard())) as made:
        until(lambda: made.get("/api/overview").json["exact"], "the landing to be read")
        yield made


@pytest.mark.parametrize("kind", PATHS)
def test_each_kind_is_a_file_to_save(dashboard, kind):
    """With a name, and a media type that no browser runs as a page."""
    found = dashboard.get(f"{PATHS[kind]}?{TIME}&theme=dark&width=600")
    assert found.status == 200
    assert found.body.startswith(BEGINS[kind])
    assert found.headers["content-disposition"] == f'attachment; filename="timeline.{kind}"'
    assert "html" not in found.headers["content-type"]


@pytest.mark.parametrize("wrong", ["theme=red", "width=1", "width=99999", "height=-1", "px=0", "by=x"])
@pytest.mark.parametrize("kind", PATHS)
def test_a_wrong_parameter_is_refused(dashboard, kind, wrong):
    """With its name."""
    found = dashboard.get(f"{PATHS[kind]}?{TIME}&{wrong}")
    assert found.status == 400
    assert found.json["error"].startswith(wrong.partition("=")[0])
