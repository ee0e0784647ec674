"""The notebooks run from top to bottom, and are stored with the outputs of such a run."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import re
import socket
from itertools import pairwise, zip_longest
from pathlib import Path

import matplotlib as mpl
import pytest
from PIL import Image, ImageChops, ImageStat

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

DRAWS = ("bf.plot.", "bf.wall.render(", "bf.wall.timelapse(", "bf.interactive.")

# What differs between two runs, or between two machines.
VOLATILE = {
    "a path of temporary files": r"[/\\]te?mp[/\\]|[/\\]var[/\\]folders",
    "a port, except that of the examples": r"(?:localhost|127\.0\.0\.1):(?!5052\b)\d+",
    "an address of an object": r"\bat 0x[0-9a-f]+",
    "a duration": r"\d ?(?:ms|µs|seconds)\b|\b\d+(?:\.\d+)? s\b|\d+it/s|requests/s",
    "a bare object": r"<[\w.]+ object\b|<Axes|<Figure|<PIL\.",
    "the name of the machine": rf"\b{re.escape(socket.gethostname())}\b",
}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def surroundings(monkeypatch, machine_cache):
    """A cache of this run."""
    # Where matplotlib stores its list of fonts, which takes seconds to make, follows the cache.
    monkeypatch.setenv("MPLCONFIGDIR", mpl.get_cachedir())
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine_cache))


@pytest.fixture(scope="module")
def make():
    """The script behind `make notebooks`."""
    # Imported where it is used, since it takes seconds which every other test would wait for.
    described = importlib.util.spec_from_file_location("make_notebooks", FOLDER / "make.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def read(path):
    """The cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code(cells):
    """The cells that run."""
    return [cell for cell in cells if cell["cell_type"] == "code"]


def source(cell):
    """The text of a cell."""
    return "".join(cell["source"])


def draws(cell):
    """Whether a cell draws."""
    return cell["cell_type"] == "code" and any(call in source(cell) for call in DRAWS)


def texts(cell):
    """What a cell shows as text: the stream or the type, and the text.

    A slow cell prints in several parts, a fast one in a single one.
    """
    found = []
    for output in cell["outputs"]:
        shown = {output.get("name"): output.get("text"), **output.get("data", {})}
        kinds = sorted(kind for kind, text in shown.items() if text is not None)
        kinds = [kind for kind in kinds if not kind.startswith(("image/", "application/"))]
        for kind in kinds:
            text = "".join(shown[kind])
            if found and found[-1][0] == kind == output.get("name"):
                text = found.pop()[1] + text
            found.append((kind, text))
    return found


def pictures(cell):
    """The images that a cell shows, decoded."""
    shown = [output.get("data", {}).get("image/png") for output in cell["outputs"]]
    pngs = [base64.b64decode("".join(png)) for png in shown if png is not None]
    return [Image.open(io.BytesIO(png)).convert("RGBA").convert("RGB") for png in pngs]


def differs(picture, other):
    """Whether two pictures show different things; they may differ by a pixel."""
    if any(abs(one - two) > 2 for one, two in zip(picture.size, other.size, strict=True)):
        return True
    small = [image.resize((160, 90), Image.Resampling.BOX) for image in (picture, other)]
    return max(ImageStat.Stat(ImageChops.difference(*small)).mean) > 1


def test_there_are_notebooks():
    """The first notebook is where `make lab` looks for it."""
    assert "01_validator_income.ipynb" in [path.name for path in NOTEBOOKS]


@each_notebook
def test_a_notebook_ends_with_own_validators(path):
    """After the simulated chain, a reader wants the lines to change, with a loader of files."""
    last = read(path)[-1]

    assert source(last).startswith("## With your own validators\n")
    assert re.search(r"bf\.(validators|index)\(", source(last))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.long if place else pytest.mark.more)
        for place, path in enumerate(NOTEBOOKS)
    ],
)
def test_a_notebook_is_stored_with_the_outputs_of_a_run(path, surroundings, make):
    """Each cell shows what is stored, when it runs again. When it differs: `make notebooks`."""
    stored, again = code(read(path)), code(make.run(path)["cells"])

    assert [cell["id"] for cell in stored] == [cell["id"] for cell in again]
    changed = [
        (cell["id"], old, new)
        for cell, now in zip(stored, again, strict=True)
        for old, new in zip_longest(texts(cell), texts(now))
        if old != new
    ]
    assert [] == changed
    for cell, now in zip(stored, again, strict=True):
        # A plotly figure is a picture only where it is stored.
        figures = [output for output in now["outputs"] if make.FIGURE in output.get("data", {})]
        assert len(pictures(cell)) == len(pictures(now)) + len(figures), cell["id"]
        if not figures:
            pairs = zip(pictures(cell), pictures(now), strict=True)
            assert not any(differs(*pair) for pair in pairs), cell["id"]


@each_notebook
def test_stored_outputs_are_complete(path):
    """All cells ran in order without errors or warnings; each that draws has one picture."""
    cells = code(read(path))
    outputs = [(cell["id"], output) for cell in cells for output in cell["outputs"]]

    assert [*range(1, len(cells) + 1)] == [cell["execution_count"] for cell in cells]
    assert [] == [name for name, output in outputs if output["output_type"] == "error"]
    assert [] == [name for name, output in outputs if output.get("name") == "stderr"]
    drawing = [cell["id"] for cell in cells if draws(cell)]
    assert drawing
    assert drawing == [cell["id"] for cell in cells for _ in pictures(cell)]
    for cell in cells:
        for picture in pictures(cell):
            assert min(picture.size) >= 300
            # More than a white page: lines, texts and fills, and what lies between them.
            assert len(picture.getcolors(picture.width * picture.height)) > 10


@each_notebook
def test_stored_outputs_are_the_same_on_every_machine(path):
    """No temporary path, port, duration or state of a widget: only text, tables and pictures."""
    cells = code(read(path))
    kinds = {
        kind for cell in cells for output in cell["outputs"] for kind in output.get("data", {})
    }

    assert kinds <= {"text/plain", "text/html", "image/png"}
    assert [] == [
        (cell["id"], what, match[0])
        for cell in cells
        for _, text in texts(cell)
        for what, pattern in VOLATILE.items()
        if (match := re.search(pattern, text))
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("/tmp/tmpl3g7l6pe/income has a different table", "a path of temporary files"),
        ("Beacon node http://127.0.0.1:42103", "a port, except that of the examples"),
        ("<generator object numbers at 0x7f3a5c>", "an address of an object"),
        ("income_history: 100% [00:02<00:00, 12.1 requests/s]", "a duration"),
        ("loaded in 2.5 s", "a duration"),
        ("<IPython.core.display.Image object>", "a bare object"),
        ("<Axes: xlabel='Day'>", "a bare object"),
    ],
)
def test_volatile_text_is_found(text, what):
    """The search finds what differs between runs, and not the address of the examples."""
    assert re.search(VOLATILE[what], text)
    assert not re.search(VOLATILE[what], "http://127.0.0.1:5052: 12 seats, 3 stored, 50 seats")


def test_a_changed_picture_is_found():
    """A bar that is a little higher counts; a shift of the colours by one step does not."""
    picture = Image.new("RGB", (640, 360), "white")
    picture.paste("#3f90da", (100, 200, 160, 300))
    higher, shifted = picture.copy(), picture.copy()
    higher.paste("#3f90da", (100, 150, 160, 300))
    shifted.paste("#4091db", (100, 200, 160, 300))

    assert differs(picture, higher)
    assert not differs(picture, shifted)


def test_notebooks_are_small():
    """A clone and a viewer load all of them: less than 3 MB together."""
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 3e6


@pytest.mark.more
@each_notebook
def test_a_notebook_has_no_other_metadata(path):
    """Beside outputs, text and code alone are stored: nothing of the machine that ran it."""
    import nbformat

    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)

    assert (4, 5) == (notebook.nbformat, notebook.nbformat_minor)
    assert {"kernelspec"} == set(notebook.metadata)
    assert "python3" == notebook.metadata.kernelspec.name
    assert [] == [cell.id for cell in notebook.cells if cell.metadata]
    # A name given by hand stays when cells around it come and go; a random one says nothing.
    assert [] == [cell.id for cell in notebook.cells if not cell.id.replace("-", "").isalpha()]
    assert len(notebook.cells) == len({cell.id for cell in notebook.cells})


@each_notebook
def test_a_notebook_asks_before_it_shows(path):
    """Each picture has a text right above it that asks the question which it answers."""
    above = {cell["id"]: before for before, cell in pairwise(read(path)) if draws(cell)}

    assert above
    assert [] == [
        name
        for name, text in above.items()
        if text["cell_type"] != "markdown" or "?" not in source(text)
    ]


@each_notebook
def test_cells_are_short(path):
    """A cell fits on the screen, with its output."""
    assert [] == [cell["id"] for cell in code(read(path)) if len(source(cell).splitlines()) > 20]
