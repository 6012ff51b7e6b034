"""Tests on captures of third parties, which are no part of this project: skipped where the captures are not."""

import pytest

from support.files.captures import REQUIRED, absent, present


def pytest_itemcollected(item: pytest.Item) -> None:
    """`-m captures` runs only these tests, `-m "not captures"` all others."""
    item.add_marker("captures")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """One place skips all of them, so that the summary has one line with their number and the reason."""
    if present():
        return
    if REQUIRED:
        pytest.fail(f"{absent()}; WHENABOUTS_CAPTURES=required makes that a failure", pytrace=False)
    pytest.skip(absent())
