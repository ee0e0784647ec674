"""Draw the pictures of README.md and of the first page, for light and for dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

import beaconframes as bf

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).resolve().parent
PAPER_AND_INK = {"light": ("#ffffff", "#1f2328"), "dark": ("#0d1117", "#e6edf3")}


def choose_colours(paper: str, ink: str) -> dict[str, str]:
    """Return the settings of matplotlib for the colours of a page."""
    of_ink = ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"]
    of_ink += ["xtick.labelcolor", "ytick.labelcolor"]
    of_paper = ["figure.facecolor", "axes.facecolor", "savefig.facecolor"]
    return dict.fromkeys(of_ink, ink) | dict.fromkeys(of_paper, paper) | {"grid.color": ink + "26"}


def move_legend(figure: Figure, ax: Axes) -> None:
    """Put the legend below the chart, where a narrow picture has room."""
    if legend := ax.get_legend():
        texts = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
        handles = legend.legend_handles
        legend.remove()
        figure.legend(handles, texts, loc="outside lower center", ncols=2, frameon=False)


def main() -> None:
    """Load from the sample, and write each picture twice."""
    with bf.local():
        income = bf.load_income_history(range(100), since="2026-10-01", until="2026-10-05")
        blocks = bf.load_produced_blocks(range(100))
        duties = bf.load_attestations(range(60), since=-100, until=-3)
        pixels = bf.load_graffiti_wall(since=0)
    charts: dict[str, Callable[[Axes], object]] = {
        "income": lambda ax: bf.plot.income(
            income, blocks=blocks, every="day", unit="eth", by="component", ax=ax
        ),
        "duties": lambda ax: bf.plot.attestations(duties, ax=ax),
        "wall": lambda ax: bf.plot.wall(pixels, caption="", ax=ax).set_axis_off(),
    }
    for name, draw in charts.items():
        for theme, colours in PAPER_AND_INK.items():
            with bf.plot.style(), plt.rc_context(choose_colours(*colours)):
                figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
                draw(ax)
                move_legend(figure, ax)
                figure.savefig(FOLDER / f"{name}-{theme}.png", dpi=130, transparent=True)
                plt.close(figure)
        print(f"drew {name}")


if __name__ == "__main__":
    main()
