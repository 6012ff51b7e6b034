"""How tests are spread over two workers: those that share a Spark session stay together, and those of whole systems."""

import pytest

GROUPS = ("spark", "e2e")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one group run in one worker, one after the other; all others go wherever there is room."""
    for item in items:
        folder = item.path.parent.name
        if folder in GROUPS:
            item.add_marker(pytest.mark.xdist_group(folder))
    # The long groups first, so that no worker is left with one of them in the end.
    items.sort(key=lambda item: item.path.parent.name not in GROUPS)
