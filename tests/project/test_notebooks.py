"""The notebooks run from top to bottom, show what they promise, and are kept clean."""

from __future__ import annotations

import base64
import io
import json
import tempfile
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pytest
from PIL import Image
from traitlets.config import Config

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))

# Seconds for one cell; the first that asks the local explorer simulates its chain.
PATIENCE = 120

DRAWS = ("bf.plot.", "bf.wall.render(")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def surroundings(monkeypatch, tmp_path, machine_cache):
    """A cache of this run and an empty folder to run in; nothing of the user's own IPython."""
    # Where matplotlib keeps its list of fonts, which takes seconds to make, follows the cache.
    monkeypatch.setenv("MPLCONFIGDIR", mpl.get_cachedir())
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine_cache))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # The kernel chooses the backend that shows figures beneath cells, unless one is set.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def transport():
    """Sockets of the file system for the kernel: over TCP it warns that anybody may listen."""
    # Left to itself jupyter_client names them in the working folder, which is not the kernel's; and
    # a folder of pytest's may have a longer name than a socket is allowed.
    with tempfile.TemporaryDirectory() as folder:
        yield Config({"KernelManager": {"transport": "ipc", "ip": str(Path(folder) / "kernel")}})


def code(notebook):
    """The cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def pictures(cell):
    """The images that a cell shows, decoded."""
    shown = [output.data for output in cell.outputs if "data" in output]
    pngs = [base64.b64decode(data["image/png"]) for data in shown if "image/png" in data]
    return [Image.open(io.BytesIO(png)).convert("RGB") for png in pngs]


def read(path, version=4):
    """A notebook from its file."""
    # Imported where it is used, since it takes seconds which every other test would wait for.
    import nbformat

    return nbformat.read(path, as_version=version)


def test_there_are_notebooks():
    """The first notebook is where `make lab` looks for it."""
    assert "01_validator_income.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.more
@each_notebook
def test_a_notebook_runs(path, surroundings, transport):
    """Every cell runs, in order; each that draws shows one picture."""
    from nbclient import NotebookClient

    notebook = read(path)
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        resources={"metadata": {"path": str(surroundings)}},
        config=transport,
    )
    client.execute()

    cells = code(notebook)
    outputs = [(cell.id, output) for cell in cells for output in cell.outputs]
    assert [] == [cell_id for cell_id, output in outputs if output.output_type == "error"]
    assert [] == [(i, output.text) for i, output in outputs if output.get("name") == "stderr"]
    assert [*range(1, len(cells) + 1)] == [cell.execution_count for cell in cells]

    drawing = [cell.id for cell in cells if any(call in cell.source for call in DRAWS)]
    assert drawing
    assert drawing == [cell.id for cell in cells for _ in pictures(cell)]
    for cell in cells:
        for picture in pictures(cell):
            assert min(picture.size) >= 300
            # More than a white page: lines, texts and fills, and what lies between them.
            assert len(picture.getcolors(picture.width * picture.height)) > 10

    assert [] == list(surroundings.iterdir())


@pytest.mark.more
@each_notebook
def test_a_notebook_is_kept_without_outputs(path):
    """What is kept is text and code alone: no outputs, no counts, nothing of who ran it."""
    import nbformat

    notebook = read(path, nbformat.NO_CONVERT)
    nbformat.validate(notebook)

    assert (4, 5) == (notebook.nbformat, notebook.nbformat_minor)
    assert {"kernelspec"} == set(notebook.metadata)
    assert "python3" == notebook.metadata.kernelspec.name
    assert [] == [cell.id for cell in code(notebook) if cell.outputs or cell.execution_count]
    assert [] == [cell.id for cell in notebook.cells if cell.metadata]
    # A name given by hand stays when cells around it come and go; a random one says nothing.
    assert [] == [cell.id for cell in notebook.cells if not cell.id.replace("-", "").isalpha()]
    assert len(notebook.cells) == len({cell.id for cell in notebook.cells})


@each_notebook
def test_a_notebook_asks_before_it_shows(path):
    """Each picture has a text right above it that asks the question which it answers."""
    cells = json.loads(path.read_text())["cells"]
    above = {
        cell["id"]: before
        for before, cell in pairwise(cells)
        if cell["cell_type"] == "code" and any(call in "".join(cell["source"]) for call in DRAWS)
    }

    assert above
    assert [] == [
        cell_id
        for cell_id, text in above.items()
        if text["cell_type"] != "markdown" or "?" not in "".join(text["source"])
    ]
