"""Run the notebooks and store their outputs: ``python notebooks/make.py``, or ``make notebooks``.

The stored outputs are what a viewer of repositories shows: text, tables and small pictures. They
are the same on every machine. plotly figures are stored as pictures, which needs Chromium.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parent
FIGURE = "application/vnd.plotly.v1+json"
CELL_TIMEOUT = 120
"""Seconds."""
PICTURE_WIDTH = 900
"""Pixels of a plotly figure."""
_ADDRESS = re.compile(r"(?<=127\.0\.0\.1:)\d+")
# The checksum of a manifest, which states the version.
_RELEASE = re.compile(r"(?<=beaconframes )\d+\.\d+\.\d+\b|(?<=sha256:)[0-9a-f]{16}\b")


def notebooks():
    """Return the paths of the notebooks, sorted by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path):
    """Return a notebook with the outputs of a run in an empty folder, which stays empty."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("here", "ipython"):
            Path(folder, name).mkdir()
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(Path(folder, "here"))}},
            # Sockets of the file system: over TCP, the kernel warns that anyone can connect.
            config=Config({"KernelManager": {"transport": "ipc", "ip": str(Path(folder, "k"))}}),
        )
        client.execute(env=_environment(Path(folder, "ipython")))
        left = [file.name for file in Path(folder, "here").iterdir()]
    if left:
        raise RuntimeError(f"{path.name} left files in its folder: {', '.join(left)}")
    return _without_machine(notebook)


def _environment(ipython):
    """Return the environment of a kernel: no settings of the user, and no progress bars."""
    # A kernel shows figures below cells only if no backend is set.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "MPLBACKEND" and not name.startswith("BEACONFRAMES_")
    }
    return kept | {"IPYTHONDIR": str(ipython), "BEACONFRAMES_PROGRESS": "0"}


def _without_machine(notebook):
    """Remove what differs between machines and releases: versions, and ports of local servers."""
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec}
    for output in outputs(notebook):
        if "text" in output:
            output.text = _RELEASE.sub("...", _ADDRESS.sub("5052", output.text))
        for kind, shown in output.get("data", {}).items():
            if kind.startswith("text/"):
                output.data[kind] = _ADDRESS.sub("5052", shown)
        if "image/png" in output.get("data", {}):
            # The text is the Python class and the size.
            output.data.pop("text/plain", None)
            output.data["image/png"] = encode(shrink(decode(output.data["image/png"])))
    return notebook


def outputs(notebook):
    """Return all outputs of a notebook, in order."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def decode(text):
    """Return the bytes of an image in an output."""
    return base64.b64decode(text)


def encode(image):
    """Return the text of an image in an output."""
    return base64.b64encode(image).decode()


def shrink(png):
    """Return a picture with at most 256 colours; an animation is unchanged."""
    picture = Image.open(io.BytesIO(png))
    if getattr(picture, "is_animated", False):
        return png
    method = Image.Quantize.FASTOCTREE if "A" in picture.mode else Image.Quantize.MEDIANCUT
    if "A" in picture.mode and picture.getextrema()[-1] == (255, 255):
        picture, method = picture.convert("RGB"), Image.Quantize.MEDIANCUT
    colours = picture.quantize(256, method=method, dither=Image.Dither.NONE)
    small = io.BytesIO()
    colours.save(small, format="PNG", optimize=True)
    return min(png, small.getvalue(), key=len)


def draw_figures(notebooks):
    """Replace the plotly figures by pictures, drawn in Chromium."""
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    figures = [output for notebook in notebooks for output in outputs(notebook)]
    figures = [output for output in figures if FIGURE in output.get("data", {})]
    if not figures:
        return
    names = ("chromium", "chromium-browser", "chrome", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise RuntimeError("no Chromium found, which draws the plotly figures: install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page()
        page.add_script_tag(content=get_plotlyjs())
        for output in figures:
            figure = output.data[FIGURE]
            layout = figure["layout"]
            height = layout.get("height") or layout["template"]["layout"].get("height", 500)
            size = {"width": PICTURE_WIDTH, "height": height}
            url = page.evaluate(
                "([figure, size]) => Plotly.toImage(figure, {format: 'png', ...size})",
                [figure, size],
            )
            output.data = {"image/png": encode(shrink(decode(url.partition(",")[2])))}
        browser.close()


def main():
    """Run the notebooks whose names begin with an argument, or all, and write them."""
    chosen = [path for path in notebooks() if path.name.startswith(tuple(sys.argv[1:] or [""]))]
    with ThreadPoolExecutor(2) as threads:
        made = list(threads.map(run, chosen))
    draw_figures(made)
    for path, notebook in zip(chosen, made, strict=True):
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
