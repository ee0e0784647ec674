"""Run the scripts of the gallery, save their pictures, and write the page of the gallery.

Each script in this folder draws one chart in both libraries: ``ax`` in matplotlib, ``figure`` in
plotly. Some scripts of the graffiti wall make an ``image`` or an ``animation`` instead. ``--pages
FOLDER`` also saves the plotly figures as HTML. ``--new`` draws only the pictures that do not exist.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import runpy
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import beaconframes as bf

GALLERY = Path(__file__).resolve().parent
_ALT_TEXT = "Description"
"""The keyword in PNG files."""
_HEAD = """# Gallery

Every chart in both libraries, and the graffiti wall. The pictures come from `bf.plot`;
`bf.interactive` draws the same charts with zoom and hover text. The data come from the simulated
sample.

`make site` builds a site that has the interactive figures too. `python docs/gallery/make.py`
generates this page and its pictures.
"""


def scripts() -> list[Path]:
    """Return the scripts, sorted by name."""
    return sorted(path for path in GALLERY.glob("*.py") if path.name != "make.py")


def run(script: Path) -> dict[str, Any]:
    """Run a script in a temporary folder and return its variables."""
    mpl.use("Agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()):
            drawn = runpy.run_path(str(script))
        if "animation" in drawn:
            drawn["animation"] = Path(drawn["animation"]).read_bytes()
    return drawn


def save_picture(drawn: dict[str, Any], path: Path) -> None:
    """Save the chart, the image or the animation of a script."""
    if "ax" in drawn:
        drawn["ax"].figure.savefig(path, dpi=100)
        # Half of the bytes. Other methods lose colours of few pixels.
        method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
        picture = Image.open(path).convert("RGB").quantize(256, method=method, dither=dither)
        texts = PngInfo()
        texts.add_itxt(_ALT_TEXT, bf.plot.alt_text(drawn["ax"]))
        picture.save(path, optimize=True, pnginfo=texts)
    elif "image" in drawn:
        bf.wall.save(drawn["image"], path)
    else:
        path.write_bytes(drawn["animation"])


def read_title(script: Path) -> str:
    """Return the docstring of a script, without its period."""
    docstring = script.read_text(encoding="utf-8").partition("\n\n")[0]
    return docstring.strip('"').removesuffix(".")


def read_alt_text(script: Path) -> str:
    """Return the text alternative of a picture: what its chart shows; of the wall, its title."""
    with Image.open(script.with_suffix(".png")) as picture:
        return str(picture.info.get(_ALT_TEXT, f"{read_title(script)}."))


def read_code(script: Path) -> str:
    """Return a script without its docstring."""
    return script.read_text(encoding="utf-8").partition("\n\n")[2].strip()


def page() -> str:
    """Return the page: title, picture and code of each script."""
    parts = [_HEAD]
    for script in scripts():
        picture = f"![{read_alt_text(script)}]({script.stem}.png)"
        code = f"```python\n{read_code(script)}\n```"
        parts.append(f"## {read_title(script)}\n\n{picture}\n\n{code}\n")
    return "\n".join(parts)


def main() -> None:
    """Write the pictures, the figures and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="folder for the interactive figures")
    parser.add_argument("--new", action="store_true", help="only scripts without a picture")
    parser.add_argument("names", nargs="*", help="only these scripts")
    chosen = parser.parse_args()
    if chosen.pages:
        chosen.pages.mkdir(parents=True, exist_ok=True)
    for script in scripts():
        picture = script.with_suffix(".png")
        if (chosen.names and script.stem not in chosen.names) or (chosen.new and picture.exists()):
            continue
        drawn = run(script)
        save_picture(drawn, picture)
        plt.close("all")
        if chosen.pages and "figure" in drawn:
            # All pages share one script in the same folder.
            figure_file = chosen.pages / f"{script.stem}.html"
            drawn["figure"].write_html(figure_file, include_plotlyjs="directory")
        print(f"drew {script.stem}")
    (GALLERY / "README.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
