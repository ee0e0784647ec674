"""The style of the charts, as a context manager; importing this changes no settings."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgba

from beaconframes.colours import GRID, PAPER, Theme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

_OF_THEME = {
    *("figure.facecolor", "savefig.facecolor", "axes.facecolor", "axes.edgecolor"),
    *("axes.labelcolor", "text.color", "xtick.color", "ytick.color"),
    *("xtick.labelcolor", "ytick.labelcolor"),
}
"""The settings that a dark theme keeps."""


@cache
def _read_style() -> mpl.RcParams:
    """Read the style file, once."""
    path = Path(__file__).with_name("beaconframes.mplstyle")
    return mpl.rc_params_from_file(path, use_default_template=False)


def read_theme(ax: Axes, *, outside: bool = False) -> Theme:
    """Return the theme for the background of *ax*; that of its figure, if *ax* is transparent.

    With *outside*, it is that of the figure: captions are beside the axes.
    """
    background = to_rgba(ax.get_facecolor())
    figure = ax.get_figure(root=True)
    if (outside or background[3] == 0) and figure is not None:
        background = to_rgba(figure.get_facecolor())
    return Theme(PAPER if background[3] == 0 else to_hex(background))


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of beaconframes inside the ``with`` block; its end restores settings.

    On a dark theme, such as ``plt.style.use("dark_background")``, the background and the colour of
    texts are those of the theme, and lines have colours that are readable on it.
    """
    # The first use of pyplot loads the backend, and the backend of notebooks sets "interactive"
    # then. Inside of the block, its end would undo that, and cells would show no figures.
    plt.draw_if_interactive()  # type: ignore[no-untyped-call]
    with mpl.rc_context(_choose_settings()):
        yield


def _choose_settings() -> Any:
    """Return our settings; those for a dark background, if the current settings have one."""
    background = to_rgba(mpl.rcParams["axes.facecolor"])
    if background[3] == 0:
        background = to_rgba(mpl.rcParams["figure.facecolor"])
    theme = Theme(to_hex(background))
    if not theme.is_dark or background[3] == 0:
        return _read_style()
    settings = {name: value for name, value in _read_style().items() if name not in _OF_THEME}
    return settings | {
        "grid.color": theme.adapt(GRID),
        "xtick.labelcolor": mpl.rcParams["text.color"],
        "ytick.labelcolor": mpl.rcParams["text.color"],
        "axes.prop_cycle": cycler(color=theme.cycle),
    }
