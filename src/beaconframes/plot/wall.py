"""The graffiti wall, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import ticker
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from beaconframes import colours
from beaconframes.plot import canvas
from beaconframes.text import for_matplotlib
from beaconframes.wall import render
from beaconframes.wall.images import parse_background
from beaconframes.wall.pixel_map import build_pixel_map
from beaconframes.wall.pixel_writes import check_region

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_map import PixelMap, Show
    from beaconframes.wall.pixel_writes import Region


def wall(
    frame: IntoFrame,
    *,
    show: Show = "color",
    region: Region | None = None,
    groups: Mapping[str, Iterable[int]] | None = None,
    background: str | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw the graffiti wall: its colours, or the age, overwrites or holders of its pixels.

    *frame* is the result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``. *show*
    is ``"color"``, ``"age"`` (slots since the last write to a pixel), ``"overwrites"`` (how often
    it was painted over) or ``"territory"`` (its holder: validators, or *groups* of them such as
    ``{"ours": range(250)}``; the largest have a colour each). *region* and *background* are as in
    ``bf.wall.render``, which draws without axes.

    *kwargs* go to ``Axes.imshow``.
    """
    x0, y0, x1, y1 = check_region(region)
    pixel_map = build_pixel_map(frame, show, region, groups)
    style: dict[str, Any] = {
        "extent": (x0 - 0.5, x1 + 0.5, y1 + 0.5, y0 - 0.5),
        "interpolation": "nearest",
    }
    with canvas.open_axes(ax, kwargs) as axes:
        axes.grid(visible=False)
        axes.set_facecolor(
            f"#{parse_background(background) >> 8:06x}" if background else colours.PAPER
        )
        if pixel_map is None:
            pixels = np.asarray(render(frame, region=region))
            axes.imshow(pixels, **style | kwargs)
        else:
            pixels = np.isfinite(pixel_map.cells)
            _draw_pixel_map(axes, pixel_map, style | kwargs)
        if not pixels.any():
            axes.text(
                *(0.5, 0.5), "No pixels to draw", transform=axes.transAxes, ha="center", va="center"
            )
        axes.set_xlabel("x (pixels)")
        axes.set_ylabel("y (pixels)")
    return axes


def _draw_pixel_map(ax: Axes, pixel_map: PixelMap, style: dict[str, Any]) -> None:
    """Draw numbers with a colour bar, or holders with a legend."""
    figure = ax.get_figure(root=True)
    if not np.isfinite(pixel_map.cells).any() or figure is None:
        ax.imshow(pixel_map.cells, **{"vmin": 0, "vmax": 1} | style)
    elif pixel_map.kinds:
        style.setdefault("cmap", ListedColormap([colour for _, _, colour in pixel_map.kinds]))
        ax.imshow(pixel_map.cells, **{"vmin": -0.5, "vmax": len(pixel_map.kinds) - 0.5} | style)
        handles = [
            Patch(color=colour, label=f"{for_matplotlib(name)}: {pixels:,}")
            for name, pixels, colour in pixel_map.kinds
        ]
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
        ax.legend(handles=handles, title=pixel_map.label, alignment="left", **place)
    else:
        style.setdefault("cmap", colours.SHARES + ("_r" if pixel_map.reverse else ""))
        image = ax.imshow(pixel_map.cells, **style)
        ticks = ticker.MaxNLocator(nbins=6, integer=True)
        figure.colorbar(image, ax=ax, label=pixel_map.label, ticks=ticks, shrink=0.8)
