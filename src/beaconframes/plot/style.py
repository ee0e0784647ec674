"""The style of the charts, as a context manager; importing this changes no settings."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgba

from beaconframes.colours import GRID, PAPER, Theme
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

_OF_THEME = {
    *("figure.facecolor", "savefig.facecolor", "axes.facecolor", "axes.edgecolor"),
    *("axes.labelcolor", "text.color", "xtick.color", "ytick.color"),
    *("xtick.labelcolor", "ytick.labelcolor"),
}
"""The settings that a dark theme keeps."""


_SIZES: Any = (
    "font.size",
    "axes.labelsize",
    "xtick.labelsize",
    "ytick.labelsize",
    "legend.fontsize",
)
"""The settings that are font sizes; others are relative to the first one."""
_FONT_SIZE: ContextVar[float] = ContextVar("font_size", default=10)
"""The font size of `style`, which the charts inside its block have too."""


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
def style(font_size: float | None = None) -> Iterator[None]:
    """Draw in the style of beaconframes inside the ``with`` block; its end restores settings.

    *font_size* is that of texts, in points, also of the charts of `beaconframes.plot` inside the
    block; numbers and legends are a tenth smaller. Default: 10. A figure for a column of print
    needs about 7.

    On a dark theme, such as ``plt.style.use("dark_background")``, the background and the colour of
    texts are those of the theme, and lines have colours that are readable on it.
    """
    # The first use of pyplot loads the backend, and the backend of notebooks sets "interactive"
    # then. Inside of the block, its end would undo that, and cells would show no figures.
    plt.draw_if_interactive()  # type: ignore[no-untyped-call]
    size = _FONT_SIZE.get() if font_size is None else _check_font_size(font_size)
    token = _FONT_SIZE.set(size)
    scale = size / _read_style()["font.size"]
    sizes: Any = {name: scale * _read_style()[name] for name in _SIZES}
    try:
        with mpl.rc_context({**_choose_settings(), **sizes}):
            yield
    finally:
        _FONT_SIZE.reset(token)


def _check_font_size(size: Any) -> float:
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < 200:
        raise UsageError(
            f"font_size={size!r} is not a size in points", hint="Give points, such as 7"
        )
    return size


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
