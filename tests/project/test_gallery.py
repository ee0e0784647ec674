"""The gallery: every script draws, and the page shows what the scripts are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from PIL import Image
from plotly.graph_objects import Figure

from beaconframes import interactive, plot, wall

from ..conftest import locked

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "gallery"


def load():
    path = GALLERY.parent / "site" / "gallery_pages.py"
    spec = importlib.util.spec_from_file_location("gallery_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load()
make = pages.make
OTHERS = {"style", "alt_text", "save_graffiti"}
"""Functions that draw no chart."""

each_script = pytest.mark.parametrize("script", make.scripts(), ids=lambda path: path.stem)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.more
@each_script
def test_a_script_draws_a_picture_and_a_figure(
    script, monkeypatch, machine_cache, site_folder, tmp_path
):
    """It runs as it stands and draws something, twice; nothing of it is clipped.

    The site has what is drawn here, so that its build draws only what is not drawn yet.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine_cache))

    with locked(site_folder):
        drawn = pages.write_figure(script, site_folder / "site-work" / "more" / "figures")

    if "ax" not in drawn:
        # An image of the wall, or its time-lapse: pixels without axes.
        make.save_picture(drawn, tmp_path / "wall.png")
        with Image.open(tmp_path / "wall.png") as image:
            assert ("animation" in drawn) == (getattr(image, "n_frames", 1) > 1)
            assert len(image.convert("RGBA").getcolors(image.width * image.height)) > 5
        return
    ax, figure = drawn["ax"], drawn["figure"]
    assert plot.alt_text(ax) == make.read_alt_text(script)
    assert isinstance(ax, Axes)
    assert isinstance(figure, Figure)
    assert ax.has_data()
    assert len(figure.data)
    assert [] == [text.get_text() for text in ax.texts if text.get_text().startswith("No ")]
    # The picture is saved, so all texts have their places.
    whole, drawn_in = ax.figure.bbox, ax.get_tightbbox()
    assert -1 <= drawn_in.x0 <= drawn_in.x1 <= whole.x1 + 1
    assert -1 <= drawn_in.y0 <= drawn_in.y1 <= whole.y1 + 1


def test_pictures_of_charts_are_small():
    """A clone and a page have all of them: at most 60 kB each."""
    sizes = {
        script.stem: script.with_suffix(".png").stat().st_size
        for script in make.scripts()
        if not script.stem.startswith("wall")
    }

    assert {} == {name: size for name, size in sizes.items() if size > 60_000}


@pytest.mark.parametrize("module", [plot, interactive, wall], ids=lambda module: module.__name__)
def test_every_chart_is_in_the_gallery(module):
    """No chart and no function of the wall is left out."""
    code = "".join(script.read_text() for script in make.scripts())

    calls = [f"{module.__name__}.{name}(" for name in sorted(set(module.__all__) - OTHERS)]
    assert [] == [call for call in calls if call.replace("beaconframes", "bf", 1) not in code]


def test_the_page_is_fresh():
    """The page has every script, as it is; run docs/gallery/make.py."""
    assert make.page() == (GALLERY / "README.md").read_text(encoding="utf-8")


def test_alt_texts_state_what_charts_show():
    """Numbers, dates or names, not the title of the section."""
    for script in filter(pages.is_chart, make.scripts()):
        text = make.read_alt_text(script)
        assert re.search("[0-9]", text), script.stem
        assert text.partition(".")[0] != make.read_title(script)
        assert text in make.page()
        assert text in pages.build_section(script)
        assert text in pages.build_cards([script])


def test_every_script_has_its_picture():
    """One picture a script, on paper of its own, so that it is seen on any page."""
    pictures = sorted(path.stem for path in GALLERY.glob("*.png"))

    assert [script.stem for script in make.scripts()] == pictures
    for name in pictures:
        with Image.open(GALLERY / f"{name}.png") as image:
            picture = image.convert("RGBA")
        if "\nax = " in (GALLERY / f"{name}.py").read_text():
            assert (255, 255, 255, 255) == picture.getpixel((0, 0))
        assert (255, 255) == picture.getchannel("A").getextrema()
        assert picture.convert("L").getextrema()[0] < 100
