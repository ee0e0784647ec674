"""Run the scripts of the gallery, save their pictures, and write the page of the gallery.

Each script in this folder draws one chart in both libraries: ``ax`` in matplotlib, ``figure`` in
plotly. ``--pages FOLDER`` also saves the plotly figures as HTML.
"""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl

GALLERY = Path(__file__).resolve().parent
_HEAD = """# Gallery

Every chart in both libraries. The pictures come from `bf.plot`; `bf.interactive` draws the same
charts with zoom and hover text. The data come from the simulated sample.

`python docs/gallery/make.py` generates this page and its pictures; `--pages out/gallery` also saves
the interactive figures.
"""


def scripts() -> list[Path]:
    """Return the scripts, sorted by name."""
    return sorted(path for path in GALLERY.glob("*.py") if path.name != "make.py")


def run(script: Path) -> dict[str, Any]:
    """Run a script and return its variables."""
    mpl.use("Agg")
    return runpy.run_path(str(script))


def read_title(script: Path) -> str:
    """Return the docstring of a script, without its period."""
    docstring = script.read_text(encoding="utf-8").partition("\n\n")[0]
    return docstring.strip('"').removesuffix(".")


def read_code(script: Path) -> str:
    """Return a script without its docstring."""
    return script.read_text(encoding="utf-8").partition("\n\n")[2].strip()


def page() -> str:
    """Return the page: title, picture and code of each script."""
    parts = [_HEAD]
    for script in scripts():
        title = read_title(script)
        parts.append(
            f"## {title}\n\n![{title}.]({script.stem}.png)\n\n"
            f"```python\n{read_code(script)}\n```\n"
        )
    return "\n".join(parts)


def main() -> None:
    """Write the pictures, the figures and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="folder for the interactive figures")
    parser.add_argument("names", nargs="*", help="only these scripts")
    chosen = parser.parse_args()
    if chosen.pages:
        chosen.pages.mkdir(parents=True, exist_ok=True)
    for script in scripts():
        if chosen.names and script.stem not in chosen.names:
            continue
        drawn = run(script)
        drawn["ax"].figure.savefig(script.with_suffix(".png"), dpi=100)
        if chosen.pages:
            # All pages share one script in the same folder.
            figure_file = chosen.pages / f"{script.stem}.html"
            drawn["figure"].write_html(figure_file, include_plotlyjs="directory")
        print(f"drew {script.stem}")
    (GALLERY / "README.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
