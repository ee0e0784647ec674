"""The graffiti wall, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import ListedColormap, LogNorm, Normalize

from beaconframes import colours
from beaconframes.charts.model import Axis, Chart
from beaconframes.charts.series import check_texts
from beaconframes.plot import canvas
from beaconframes.plot.alt_text import add_alt_text
from beaconframes.plot.annotations import add_caption, add_legend, is_narrow
from beaconframes.plot.style import read_theme
from beaconframes.text import for_matplotlib
from beaconframes.wall import render
from beaconframes.wall.caption import describe_wall, list_caption_parts
from beaconframes.wall.images import parse_background
from beaconframes.wall.pixel_map import Show, build_pixel_map, read_region

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.painters import Groups, Names
    from beaconframes.wall.pixel_map import PixelMap
    from beaconframes.wall.pixel_writes import RegionChoice

_MOST_BELOW = 4  # Tick labels below a narrow wall.


def wall(
    frame: IntoFrame,
    *,
    show: Show = "color",
    region: RegionChoice = None,
    groups: Groups | None = None,
    names: Names | None = None,
    background: str | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the painted area of the graffiti wall, or the age, overwrites or holders of pixels.

    *frame* is the result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``. *show*
    is ``"color"``, ``"age"`` (the time since the last write to a pixel, up to the last slot of
    *frame*), ``"overwrites"`` (how many times it was painted) or ``"territory"`` (its holder:
    validators, or *groups* of them such as ``{"ours": range(250)}``; the largest have a colour
    each). With *names*, the result of ``bf.load_validators(...)`` or names by validator such as
    ``{838: "Ada"}``, holders are painters by name.

    *region* ``(x0, y0, x1, y1)`` is the part to draw, borders included; ``"all"`` is the whole wall
    of 1000 x 1000 pixels. By default, it is the painted area. The axes have the positions on the
    wall. Unpainted pixels have the *background* colour.

    *title*, *figsize*, *caption* and *ax* are those of every chart, as `beaconframes.plot` states.

    *kwargs* go to ``Axes.imshow``.
    """
    check_texts(caption=caption)
    columns = () if show == "color" else ("time", "validator_index")
    rows, corners = read_region(frame, region, *columns)
    x0, y0, x1, y1 = corners
    pixel_map = build_pixel_map(rows, show, corners, groups, names)
    style: dict[str, Any] = {
        "extent": (x0 - 0.5, x1 + 0.5, y1 + 0.5, y0 - 0.5),
        "interpolation": "nearest",
    }
    with canvas.open_axes(ax, kwargs, title, figsize) as axes:
        axes.grid(visible=False)
        axes.set_facecolor(
            f"#{parse_background(background) >> 8:06x}" if background else colours.PAPER
        )
        if pixel_map is None:
            pixels = np.asarray(render(rows, region=corners))
            axes.imshow(pixels, **style | kwargs)
        else:
            pixels = np.isfinite(pixel_map.cells)
            _draw_pixel_map(axes, pixel_map, style | kwargs)
        if not pixels.any():
            colour = "white" if read_theme(axes).is_dark else "black"
            middle: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "center"}
            axes.text(0.5, 0.5, "No pixels to draw", color=colour, **middle)
        axes.set_xlabel("x (pixels)")
        axes.set_ylabel("y (pixels)")
        # The swatches of the legend have no position.
        axes.set(xlim=(x0 - 0.5, x1 + 0.5), ylim=(y1 + 0.5, y0 - 0.5))
        legend = None
        if pixel_map is not None and pixel_map.kinds and pixels.any():
            texts = tuple(axes.get_legend_handles_labels()[1])
            key = Chart(Axis(""), Axis(""), legend=texts, legend_title=pixel_map.label)
            legend = add_legend(axes, axes, key)
        parts = list_caption_parts(frame, rows, corners)
        add_caption(axes, parts if caption is None else [caption], legend)
        add_alt_text(axes, describe_wall(parts, show, title))
        figure = axes.get_figure(root=True)
        if legend is not None and ax is None and figure is not None:
            # Beside a legend, a wall with square pixels needs two rounds of the layout.
            figure.draw_without_rendering()
    return axes


def _draw_pixel_map(ax: Axes, pixel_map: PixelMap, style: dict[str, Any]) -> None:
    """Draw numbers with a colour bar, or holders with a legend."""
    figure = ax.get_figure(root=True)
    if not np.isfinite(pixel_map.cells).any() or figure is None:
        ax.imshow(pixel_map.cells, **{"vmin": 0, "vmax": 1} | style)
    elif pixel_map.kinds:
        style.setdefault("cmap", ListedColormap([colour for _, _, colour in pixel_map.kinds]))
        ax.imshow(pixel_map.cells, **{"vmin": -0.5, "vmax": len(pixel_map.kinds) - 0.5} | style)
        names = [f"{for_matplotlib(name)}: {pixels:,}" for name, pixels, _ in pixel_map.kinds]
        for name, (_, _, colour) in zip(names, pixel_map.kinds, strict=True):
            ax.plot([], [], "s", color=colour, label=name)
    else:
        style.setdefault("cmap", colours.SHARES + ("_r" if pixel_map.reverse else ""))
        style.setdefault(
            "norm", (LogNorm if pixel_map.is_logarithmic else Normalize)(*pixel_map.limits)
        )
        image = ax.imshow(pixel_map.cells, **style)
        # Beside a narrow wall, the bar would take half of the width.
        is_below = is_narrow(ax)
        place: dict[str, Any] = {"location": "bottom"} if is_below else {"shrink": 0.8}
        bar = figure.colorbar(image, ax=ax, label=pixel_map.label, **place)
        ticks = pixel_map.ticks[:: 2 if is_below and len(pixel_map.ticks) > _MOST_BELOW else 1]
        bar.set_ticks([at for at, _ in ticks], labels=[text for _, text in ticks])
        bar.minorticks_off()
