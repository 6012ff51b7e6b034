"""The names that the protocol package gives out, each loaded with its module on first use."""

import subprocess
import sys

import pytest

import whenabouts_protocol
from support.files.vectors import rows
from whenabouts_protocol.messages import batch, unbatch


def test_importing_the_package_loads_nothing_else():
    """A board pays for what it uses."""
    code = "import sys, whenabouts_protocol; print([m for m in sys.modules if m.startswith('whenabouts_protocol.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", whenabouts_protocol.__all__)
def test_every_name_is_there(name):
    """By attribute, and the same object again."""
    value = getattr(whenabouts_protocol, name)
    assert value is getattr(whenabouts_protocol, name)
    assert value.__name__ == name
    assert value.__module__.startswith("whenabouts_protocol.")


def test_a_name_that_is_not_there_is_an_attribute_error():
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'reeding'"):
        getattr(whenabouts_protocol, "reeding")  # noqa: B009  # mypy knows that it is not there
    with pytest.raises(ImportError):
        exec("from whenabouts_protocol import reeding")


def test_batches_are_decoded_by_a_module_of_their_own():
    """A board that only sends does not load `unbatch`; `batch` decodes with it."""
    for row in rows("batches.json"):
        data = bytes.fromhex(row["hex"])
        assert unbatch.readings_in(data) == batch.decode_batch(data)
