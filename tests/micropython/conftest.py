"""A fixture for tests that hold on every MicroPython VM."""

import pytest

from support.board.scripts import VMS


@pytest.fixture(params=VMS)
def run_on_vm(request):
    """`run_on_vm(script, *args, heap=...)` gives the output of a script on one of the VMs."""
    return VMS[request.param]
