"""The notebooks print what they show. ``python -m tests.project.test_notebooks`` runs them anew and keeps that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


def run(path: Path, folder: Path) -> Any:
    """The notebook with what it prints now; what a kernel has to say about itself is left out."""
    notebook: Any = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
        if cell.cell_type == "code":
            cell.outputs = [part for part in cell.outputs if part.get("name") != "stderr"]
    return notebook


def printed(notebook: Any) -> list[str]:
    return [part.text for cell in notebook.cells for part in cell.get("outputs", ()) if part.output_type == "stream"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    shown = nbformat.read(EXAMPLES / name, as_version=4)
    now = run(EXAMPLES / name, tmp_path)
    assert printed(now) == printed(shown)
    assert len(printed(shown)) >= 3, "a notebook without output shows nothing"
    warned = [part for cell in now.cells for part in cell.get("outputs", ()) if part.output_type != "stream"]
    assert warned == [], "an empty bar, a figure or a value nobody asked for"


if __name__ == "__main__":
    import tempfile

    for name in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(EXAMPLES / name, Path(folder)), EXAMPLES / name)
