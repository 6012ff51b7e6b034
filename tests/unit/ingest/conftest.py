"""A bridge for the tests of the ingest."""

import pytest

from support.cloud.ingest import NOW_US, quick_folder
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing


@pytest.fixture
def bridge():
    """A bridge on a landing in memory; its folder is bridge.folder."""
    with quick_folder() as folder:
        landing = Landing(folder)
        made = Bridge(landing, lambda: NOW_US)
        made.folder = folder
        yield made
        landing.close()
