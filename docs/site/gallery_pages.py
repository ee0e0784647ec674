"""The pages of the gallery: each chart as a picture and as an interactive figure, with its code.

The pictures are those of ``docs/gallery``. The interactive figures are drawn here, by the same
scripts. They are stored until a script or the package changes.
"""

from __future__ import annotations

import functools
import hashlib
import html
import importlib.util
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly
from matplotlib import pyplot as plt

import beaconframes as bf
from beaconframes import colours

if TYPE_CHECKING:
    from types import ModuleType

GALLERY = Path(__file__).resolve().parents[1] / "gallery"
PACKAGE = Path(bf.__file__).parent

BACKGROUNDS = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
DARK = "#14181e"
"""The background of dark pages."""

GROUPS = {
    "Income": ("income", "withdrawals", "deposits", "leaderboard"),
    "Yield": ("own_yield", "yield"),
    "Balances": ("balances",),
    "Attestations": ("attestation", "inclusion"),
    "Proposals": ("proposal", "luck"),
    "Sync committees": ("sync",),
    "The graffiti wall": ("wall",),
    "Network and data": ("",),
}
"""The titles of the pages, and the first letters of the scripts on them."""


def load_make() -> ModuleType:
    """Import ``docs/gallery/make.py``, which runs the scripts."""
    spec = importlib.util.spec_from_file_location("gallery_make", GALLERY / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load_make()


def group_scripts() -> dict[str, list[Path]]:
    """Return the scripts of each page, by its title."""
    groups: dict[str, list[Path]] = {title: [] for title in GROUPS}
    left = make.scripts()
    for title, prefixes in GROUPS.items():
        for prefix in prefixes:
            groups[title] += [script for script in left if script.stem.startswith(prefix)]
            left = [script for script in left if not script.stem.startswith(prefix)]
    return {title: scripts for title, scripts in groups.items() if scripts}


def find_page(title: str) -> str:
    """Return the name of a page by its title: ``sync-committees``."""
    return title.lower().replace(" ", "-")


def find_uses(call: str) -> list[Path]:
    """Return the scripts that call a function, such as ``bf.plot.income``."""
    return [script for script in make.scripts() if f"{call}(" in script.read_text(encoding="utf-8")]


def build_pages() -> dict[str, str | bytes]:
    """Return all pages and pictures of the gallery, by file."""
    pages: dict[str, str | bytes] = {}
    cards, entries = [], []
    for title, scripts in group_scripts().items():
        page = find_page(title)
        entries.append(page)
        pages[f"gallery/{page}.md"] = "\n".join([f"# {title}\n", *map(build_section, scripts)])
        pages |= {f"gallery/{each.stem}.png": find_picture(each).read_bytes() for each in scripts}
        cards.append(f"## [{title}]({page}.md)\n\n{build_cards(scripts)}")
    pages["gallery/index.md"] = (
        "# Gallery\n\nEvery chart in both libraries, and the graffiti wall. `bf.plot` draws the "
        "pictures with\nmatplotlib; `bf.interactive` draws the same charts with plotly, with zoom "
        "and hover text. The data\ncome from the simulated sample. Select a picture for its "
        "interactive figure and its code.\n\n"
        + "\n".join(cards)
        + "\n```{toctree}\n:hidden:\n\n"
        + "\n".join(entries)
        + "\n```\n"
    )
    return pages


def find_picture(script: Path) -> Path:
    """Return the picture of a script."""
    return script.with_suffix(".png")


def build_cards(scripts: list[Path]) -> str:
    """Return a grid of small pictures that link to their charts."""
    cards = "".join(
        f":::{{grid-item-card}} {make.read_title(script)}\n"
        f":img-top: {script.stem}.png\n"
        f":img-alt: {make.read_alt_text(script)}\n"
        f":link: {script.stem}\n"
        f":link-type: ref\n"
        f":class-card: {find_classes(script)}\n:::\n"
        for script in scripts
    )
    return f"::::{{grid}} 1 2 3 3\n:gutter: 3\n\n{cards}::::\n"


def build_section(script: Path) -> str:
    """Return the section of one script: its picture, its figure and its code."""
    title, alt_text = make.read_title(script), make.read_alt_text(script)
    classes = find_classes(script)
    picture = f"```{{image}} {script.stem}.png\n:alt: {alt_text}\n:class: {classes}\n```\n"
    code = make.read_code(script)
    if is_interactive(script):
        picture = (
            f"::::{{tab-set}}\n\n:::{{tab-item}} matplotlib\n:sync: static\n\n{picture}\n:::\n\n"
            f":::{{tab-item}} plotly\n:sync: interactive\n\n"
            f'```{{raw}} html\n<div class="{classes} interactive" data-figure="{script.stem}" '
            f'role="img" aria-label="{html.escape(alt_text)}"></div>\n```\n:::\n::::\n'
        )
    return f"({script.stem})=\n## {title}\n\n{picture}\n```python\n{code}\n```\n"


def find_classes(script: Path) -> str:
    """Return the classes of a picture: a chart has another one on a dark page."""
    return "picture chart" if is_chart(script) else "picture"


def is_chart(script: Path) -> bool:
    """Return whether the picture of a script is a chart, not the wall itself."""
    return "\nax = " in script.read_text(encoding="utf-8")


def is_interactive(script: Path) -> bool:
    """Return whether a script has an interactive figure."""
    return "\nfigure = " in script.read_text(encoding="utf-8")


@functools.cache
def hash_package() -> str:
    """Return a fingerprint of all code that draws, except the scripts."""
    paths = [Path(__file__), *sorted(PACKAGE.rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def find_head(script: Path) -> str:
    """Return the first line of the figure of a script, which changes when the figure may."""
    code = script.read_bytes() + hash_package().encode()
    return f"// {hashlib.sha256(code).hexdigest()}\n"


def write_figure(script: Path, folder: Path) -> dict[str, Any]:
    """Draw the interactive figure of a script, and its picture for dark pages.

    Returns the variables of the script.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with plt.style.context(["dark_background", dict.fromkeys(BACKGROUNDS, DARK)]):
        drawn = make.run(script)
        if is_chart(script):
            make.save_picture(drawn, folder / f"{script.stem}-dark.png")
    if is_interactive(script):
        drawing = (
            f'showFigure("{script.stem}", {drawn["figure"].to_json()}, {list_dark_colours()});'
        )
        text = f"{find_head(script)}{drawing}\n"
        (folder / f"{script.stem}.js").write_text(text, encoding="utf-8")
    return drawn


def list_dark_colours() -> str:
    """Return the colours that charts have on a dark page, by those on a light one, as JSON."""
    named = [
        value for value in vars(colours).values() if isinstance(value, str) and value[:1] == "#"
    ]
    theme = colours.Theme(DARK)
    return json.dumps({colour: theme.adapt(colour) for colour in (*named, *colours.BLUES)})


def write_figures(folder: Path) -> None:
    """Draw the figures that changed: interactive ones as scripts, and pictures of dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for script in filter(is_interactive, make.scripts()):
        path = folder / f"{script.stem}.js"
        if path.exists() and path.read_text(encoding="utf-8").startswith(find_head(script)):
            continue
        write_figure(script, folder)
        plt.close("all")
    # One copy for all figures.
    library = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    if not (folder / library.name).exists():
        shutil.copy2(library, folder / library.name)
