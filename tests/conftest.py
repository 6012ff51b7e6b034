"""How tests are spread over two workers and how hypothesis draws examples.

Tests that share a Spark session stay together, and those of whole systems.
"""

import os

import pytest
from hypothesis import settings

# No deadlines: how fast something is belongs into a benchmark. The build server tries the same examples every time, so that
# a red build is the change's doing; everywhere else new examples are drawn.
settings.register_profile("anywhere", deadline=None, print_blob=True)
settings.register_profile("build server", deadline=None, derandomize=True)
settings.load_profile("build server" if os.environ.get("CI") else "anywhere")

GROUPS = ("spark", "e2e")


@pytest.hookimpl(tryfirst=True)  # before the workers read the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one group run in one worker, one after the other; all others go wherever there is room."""
    for item in items:
        folder = item.path.parent.name
        if folder in GROUPS:
            item.add_marker(pytest.mark.xdist_group(folder))
    # The long groups first, so that no worker is left with one of them in the end.
    items.sort(key=lambda item: item.path.parent.name not in GROUPS)
