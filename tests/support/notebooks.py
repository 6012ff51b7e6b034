"""Runs a notebook of the manual from its begin, in a kernel of this Python; no installed kernel is needed."""

import sys
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from support.child import environment
from support.paths import REPOSITORY

FOLDER = REPOSITORY / "docs" / "notebooks"
TIMEOUT_S = 900  # of a cell: a machine may have to compile the kernels first


class _OwnPython(AsyncKernelManager):
    """Starts the kernel with this Python, whatever kernels are installed."""

    def format_kernel_cmd(self, extra_arguments=None):
        return [sys.executable, "-m", "ipykernel_launcher", "-f", self.connection_file, *(extra_arguments or [])]


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run all cells in a folder; return the notebook with its outputs.

    Raises:
        CellExecutionError: a cell raised; the text has its traceback.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=TIMEOUT_S, kernel_manager_class=_OwnPython, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment())
    return notebook


def value_of(notebook: nbformat.NotebookNode, last: int = 1) -> str:
    """The text of the value that a cell shows, counted from the end of the cells of code."""
    cell = [one for one in notebook.cells if one.cell_type == "code"][-last]
    [shown] = [one for one in cell.outputs if one.output_type == "execute_result"]
    return str(shown.data["text/plain"])
