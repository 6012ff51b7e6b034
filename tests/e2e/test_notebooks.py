"""The notebooks of the manual, each run from its begin in a fresh kernel, and what they claim."""

import ast

import nbformat
import pytest

from support.notebooks import FOLDER, run, value_of

PATHS = {path.name: path for path in sorted(FOLDER.glob("*.ipynb"))}


def test_notebooks_are_kept_without_outputs_and_named_in_the_manual():
    index = (FOLDER.parent / "notebooks.md").read_text(encoding="utf-8")
    assert len(PATHS) == 5
    for name, path in PATHS.items():
        assert f"notebooks/{name}" in index
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None), name


def test_the_first_pair_is_found_and_explained(tmp_path):
    done = run(PATHS["01-first-pair.ipynb"], tmp_path)
    assert "no pair" in value_of(done, 3)
    assert "A" in value_of(done)
    pictures = [out for cell in done.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) == 2


def test_probabilities_add_up_to_the_truth_and_joins_on_timestamps_err_more(tmp_path):
    """The sum within four standard errors, which are below the root of the number of pairs."""
    done = run(PATHS["02-from-joins-on-timestamps.ipynb"], tmp_path)
    expected, truth = ast.literal_eval(value_of(done, 2).replace("np.float64", ""))
    assert abs(expected - truth) < 4 * truth**0.5
    errors = [line.rsplit(maxsplit=1) for line in value_of(done).splitlines() if not line.startswith("dtype")]
    assert errors[0][0] == "whenabouts OVER 50 %"
    assert {name for name, _ in errors[1:]} >= {
        "pandas merge_asof", "DuckDB range join", "Polars join_where", "Spark range join",
    }  # fmt: skip


def test_sequences_and_verdicts_are_those_that_the_text_tells(tmp_path):
    """B was not paid for; better clocks make both verdicts certain."""
    sequences = run(PATHS["03-sequences-out-of-order.ipynb"], tmp_path)
    assert "50" not in value_of(sequences)
    assert "C" in value_of(sequences, 4)
    states = run(PATHS["04-what-surely-held.ipynb"], tmp_path)
    assert value_of(states) == "[2, 0]"


@pytest.mark.timeout(1200)
def test_the_figures_of_the_papers_are_drawn(tmp_path):
    done = run(PATHS["05-figures-of-the-papers.ipynb"], tmp_path)
    figures = ast.literal_eval(value_of(done))
    assert set(figures) == {"correlation", "latwin", "cep"}
    pictures = [out for cell in done.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) == 7
