"""The examples in the documentation of the correlation and of its rules."""

import doctest

import pytest

from whenabouts_cloud.correlation.batch import one_by_one
from whenabouts_cloud.rules import model


@pytest.mark.parametrize("module", [one_by_one, model], ids=lambda m: m.__name__)
def test_documented_examples_run(module):
    """Every example in a docstring gives what it shows."""
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
