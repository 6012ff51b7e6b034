"""The recipes of the manual that need no Spark: every command prints what is shown below it."""

import pytest

from support import documents
from support.cloud import lessons

PAGES = sorted(name for name, module in documents.RUN_BY.items() if module == "tests/e2e/test_manual_commands.py")


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(tmp_path, name):
    """Every line in order, in one shell that begins in the checkout."""
    assert lessons.repeat(tmp_path, documents.page(name)) >= 1
