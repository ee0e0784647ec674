"""The graffiti wall, in plotly: zoom, hover over any pixel, and go back in time."""

from __future__ import annotations

import base64
import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts.series import check_texts
from beaconframes.frames import check_count
from beaconframes.interactive.figure import add_texts, open_figure, update_layout
from beaconframes.interactive.traces import build_square
from beaconframes.text import for_plotly
from beaconframes.wall.caption import describe_wall, list_caption_parts
from beaconframes.wall.images import (
    build_palette_image,
    build_rgba_image,
    paint_region,
    parse_background,
)
from beaconframes.wall.pixel_map import build_pixel_map, read_region
from beaconframes.wall.pixel_writes import select_region

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from plotly.graph_objects import Figure

    from beaconframes.colours import Theme
    from beaconframes.wall.painters import Groups, Names
    from beaconframes.wall.pixel_map import PixelMap, Show
    from beaconframes.wall.pixel_writes import Region, RegionChoice

_STEPS = 24
_MOST = 100
_SIDE = 560  # Screen pixels of the longer side of the wall.
_NARROWEST = 260


def wall(
    frame: IntoFrame,
    *,
    show: Show = "color",
    region: RegionChoice = None,
    groups: Groups | None = None,
    names: Names | None = None,
    background: str | None = None,
    steps: int = _STEPS,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    **kwargs: Any,
) -> Figure:
    """Show the graffiti wall, with the painter of every pixel and a slider that goes back in time.

    *frame* is the result of ``bf.load_graffiti_wall(...)`` or ``bf.wall.from_blocks(...)``. The
    hover text has the position, colour, slot, time and validator of the nearest painted pixel, as
    of the slot of the slider. The slider has this many *steps*, of equally many slots each.
    ``Figure.write_html`` makes a file that needs no network, with about 55 bytes for each write
    that some step shows.

    *show*, *region*, *groups*, *names* and *background* are as in ``bf.plot.wall``: by default, the
    figure shows the painted area. Only ``show="color"`` has a slider.

    *title*, *figsize* and *caption* are those of every chart, as `beaconframes.interactive` states.

    *kwargs* go to ``Figure.update_layout``.
    """
    check_count("steps", steps, _MOST)
    rows, corners = read_region(frame, region, "time", "validator_index")
    pixel_map = build_pixel_map(rows, show, corners, groups, names)
    figure, theme = open_figure(kwargs)
    figure.update_layout(showlegend=False)
    _set_layout(figure, corners, parse_background(background), theme)
    if pixel_map is None:
        has_pixels = _add_history(figure, rows, corners, steps)
    else:
        has_pixels = bool(np.isfinite(pixel_map.cells).any())
        figure.add_trace(_build_heatmap(pixel_map, corners))
        for name, pixels, colour in pixel_map.kinds:
            figure.add_trace(build_square(colour, name=f"{for_plotly(name)}: {pixels:,}"))
        figure.update_layout(showlegend=bool(pixel_map.kinds), legend_title_text=pixel_map.label)
    if not has_pixels:
        nothing = {
            "text": "No pixels to draw",
            "showarrow": False,
            "xref": "paper",
            "yref": "paper",
        }
        figure.add_annotation(nothing, x=0.5, y=0.5)
    check_texts(caption=caption)
    parts = list_caption_parts(frame, rows, corners)
    text = describe_wall(parts, show, title)
    if pixel_map is not None and not pixel_map.kinds:
        # The title of a horizontal bar would cover it.
        parts = [pixel_map.label, *parts]
    add_texts(figure, title, figsize, parts if caption is None else [caption], text)
    return update_layout(figure, kwargs)


def _set_layout(figure: Figure, corners: Region, background: int, theme: Theme) -> None:
    """Set square pixels and a plain hover label."""
    x0, y0, x1, y1 = corners
    width, height = x1 - x0 + 1, y1 - y0 + 1
    screen = min(_SIDE / width, _SIDE / height)
    figure.update_xaxes(title_text="x (pixels)", range=[x0 - 0.5, x1 + 0.5], constrain="domain")
    figure.update_yaxes(title_text="y (pixels)", range=[y1 + 0.5, y0 - 0.5], constrain="domain")
    figure.update_yaxes(scaleanchor="x", showgrid=False, constraintoward="top")
    # Without a width and a height of its own, the figure fits into any page.
    figure.layout.template.layout.height = max(round(height * screen), _NARROWEST) + 190
    figure.update_layout(
        margin={"l": 75, "r": 35, "t": 40, "b": 150},
        # At any zoom, the hover text appears over all of a pixel.
        hoverdistance=-1,
        hoverlabel={"bgcolor": theme.paper, "font": {"color": theme.adapt(colours.INK)}},
    )
    if background:
        figure.update_layout(plot_bgcolor=f"#{background >> 8:06x}")


def _add_history(figure: Figure, rows: pl.DataFrame, corners: Region, steps: int) -> bool:
    """Add the wall as it was at each step; return whether it has any pixel."""
    rows = select_region(rows.sort("slot", maintain_order=True), corners)
    if rows.is_empty():
        return False
    ends = _find_steps(rows, steps)
    shown = [rows.head(end) for end in ends]
    # The newest come first, because plotly shows the first of several points at a pixel.
    hovers = [_build_hovers(rows[start:end]) for start, end in pairwise([0, *ends])][::-1]
    figure.add_traces([*(_build_picture(part, corners) for part in shown), *hovers])
    for place, picture in enumerate(figure.data[: len(ends)]):
        picture.visible = place == len(ends) - 1
    if len(ends) > 1:
        figure.update_layout(sliders=[_build_slider(shown)])
    return True


def _find_steps(rows: pl.DataFrame, steps: int) -> list[int]:
    """Return how many writes each step shows, without steps that change nothing."""
    first, last = rows["slot"][0], rows["slot"][-1]
    slots = [first + (last - first + 1) * step // steps for step in range(1, steps + 1)]
    ends = rows["slot"].search_sorted(pl.Series(slots), side="left")
    return sorted({int(end) for end in ends if end})


def _build_picture(rows: pl.DataFrame, corners: Region) -> dict[str, Any]:
    """Build the image of the wall, sharp at any zoom."""
    picture = paint_region(rows, corners)
    buffer = io.BytesIO()
    (build_palette_image(picture, None) or build_rgba_image(picture, None)).save(
        buffer, format="PNG"
    )
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    place = {"x0": corners[0], "y0": corners[1]}
    return {"type": "image", "source": source, "hoverinfo": "skip"} | place


def _build_hovers(rows: pl.DataFrame) -> dict[str, Any]:
    """Build invisible points over the image, with the hover texts."""
    last = rows.unique(["x", "y"], keep="last", maintain_order=True)
    return {
        "type": "scattergl",
        "x": last["x"].cast(pl.Int16).to_numpy(),
        "y": last["y"].cast(pl.Int16).to_numpy(),
        "text": last["color"].to_list(),
        "hovertext": last["time"].dt.strftime("%b %-d, %Y, %H:%M:%S").to_list(),
        "customdata": last.select(pl.col("slot", "validator_index").cast(pl.Int32)).to_numpy(),
        "mode": "markers",
        "marker": {"opacity": 0, "size": 1},
        "hovertemplate": (
            "x %{x}, y %{y}: #%{text}<br>slot %{customdata[0]}<br>%{hovertext} UTC"
            "<br>validator %{customdata[1]}<extra></extra>"
        ),
    }


def _build_slider(shown: list[pl.DataFrame]) -> dict[str, Any]:
    count = len(shown)
    steps = []
    for place, rows in enumerate(shown):
        slot, time = rows.row(-1, named=True)["slot"], rows["time"][-1]
        pictures = [other == place for other in range(count)]
        hovers = [other <= place for other in range(count)][::-1]
        steps.append(
            {
                "method": "restyle",
                "args": [{"visible": pictures + hovers}],
                "label": f"{slot} ({time:%b} {time.day}, {time.year})",
            }
        )
    return {
        "steps": steps,
        "active": count - 1,
        "currentvalue": {"prefix": "Up to slot "},
        "pad": {"t": 65},
        "ticklen": 4,
    }


def _build_heatmap(pixel_map: PixelMap, corners: Region) -> dict[str, Any]:
    """Build the heatmap of a number, or of the holder, of each pixel."""
    cells = pixel_map.cells.astype(np.float32)
    options: dict[str, Any] = {
        "type": "heatmap",
        "z": cells,
        "x0": corners[0],
        "y0": corners[1],
        "hoverongaps": False,
        "colorscale": colours.SHARES,
        "reversescale": pixel_map.reverse,
        # Below the wall: beside it, the bar takes half of a narrow page.
        "colorbar": {
            "orientation": "h",
            "thickness": 14,
            "yref": "container",
            "y": 0.02,
            "yanchor": "bottom",
        },
    }
    if not pixel_map.kinds:
        zmin, zmax = pixel_map.limits
        positions = [at for at, _ in pixel_map.ticks]
        number = "z:.1~f"
        if pixel_map.is_logarithmic:
            # plotly has no logarithmic colour scale.
            options |= {"z": np.log10(cells), "customdata": cells}
            zmin, zmax, positions = np.log10(zmin), np.log10(zmax), np.log10(positions).tolist()
            number = "customdata:,d"
        options |= {"zmin": zmin, "zmax": zmax}
        options["colorbar"] |= {"tickvals": positions, "ticktext": [t for _, t in pixel_map.ticks]}
        options["hovertemplate"] = (
            f"x %{{x}}, y %{{y}}<br>painted %{{{number}}} {pixel_map.unit}<extra></extra>"
        )
    if pixel_map.kinds:
        # Reversed, so that the largest is at the top.
        names = [f"{for_plotly(name)}: {pixels:,}" for name, pixels, _ in pixel_map.kinds][::-1]
        shades = [colour for _, _, colour in pixel_map.kinds][::-1]
        count = len(names)
        ranks = count - 1 - pixel_map.cells
        texts = np.full(ranks.shape, "", dtype=object)
        is_painted = np.isfinite(ranks)
        texts[is_painted] = np.array(names, dtype=object)[ranks[is_painted].astype(np.int64)]
        # Each name has an equal part of the scale.
        edges = [(rank + side) / count for rank in range(count) for side in (0, 1)]
        colour_scale = [*zip(edges, [shade for shade in shades for _ in (0, 1)], strict=True)]
        options |= {"z": ranks.astype(np.float32), "text": texts, "colorscale": colour_scale}
        options |= {"zmin": -0.5, "zmax": count - 0.5}
        options["hovertemplate"] = "x %{x}, y %{y}<br>%{text}<extra></extra>"
        options["showscale"] = False
    return options
