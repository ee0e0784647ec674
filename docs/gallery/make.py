"""Run the scripts of the gallery, save their pictures, and write the page that shows them.

Each script beside this one draws one chart twice: ``ax`` is the picture, ``figure`` the same to
zoom and to hover. With ``--pages FOLDER`` the figures are saved there as well, as HTML.
"""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl

GALLERY = Path(__file__).resolve().parent
_HEAD = """# Gallery

Every chart in both libraries. The pictures are of `bf.plot`; the figures of `bf.interactive` show
the same, to zoom and to hover. The data are of the simulated sample chain.

`python docs/gallery/make.py` makes this page and its pictures anew; with `--pages out/gallery` it
saves the interactive figures as well.
"""


def scripts() -> list[Path]:
    """Return the scripts, by name."""
    return sorted(path for path in GALLERY.glob("*.py") if path.name != "make.py")


def run(script: Path) -> dict[str, Any]:
    """Run a script and return what it names."""
    mpl.use("Agg")
    return runpy.run_path(str(script))


def page() -> str:
    """Return the page: of each script its sentence, its picture and its code."""
    parts = [_HEAD]
    for script in scripts():
        docstring, _, code = script.read_text(encoding="utf-8").partition("\n\n")
        title = docstring.strip('"')
        parts.append(
            f"## {title.removesuffix('.')}\n\n![{title}]({script.stem}.png)\n\n"
            f"```python\n{code.strip()}\n```\n"
        )
    return "\n".join(parts)


def main() -> None:
    """Make pictures, figures and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="where to save interactive figures")
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
            # Self-contained but for one script that all pages share, beside them.
            figure_file = chosen.pages / f"{script.stem}.html"
            drawn["figure"].write_html(figure_file, include_plotlyjs="directory")
        print(f"drew {script.stem}")
    (GALLERY / "README.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
