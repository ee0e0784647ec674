"""Charts of the wall, static and interactive: cells, colours and texts."""

import base64
import io
import re

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from PIL import Image
from plotly import io as plotly_io

from beaconframes import colours, interactive, plot, wall
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from ..support.painted_walls import WALL, paint

REGION = (0, 0, 3, 2)


NAN = float("nan")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def cells(axes):
    """The cells of the image of the axes, not-a-number where empty."""
    (image,) = axes.images
    return np.ma.filled(np.ma.masked_invalid(image.get_array()).astype(float), NAN)


def picture(trace):
    """The image of a trace of plotly."""
    kind, data = trace.source.split(",", 1)
    assert "data:image/png;base64" == kind
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        return np.asarray(image.convert("RGBA"))


def look_alike(left, right):
    """Whether two pictures look the same; the colour of transparent pixels does not matter."""
    return np.array_equal(left * (left[..., 3:] > 0), right * (right[..., 3:] > 0))


def test_the_static_wall_has_axes_in_pixels():
    """Every pixel of the region is a square, y counts downwards, and the colours are exact."""
    axes = plot.wall(WALL, region=REGION, background="#0033ff")

    (image,) = axes.images
    assert np.array_equal(np.asarray(wall.render(WALL, region=REGION)), image.get_array())
    assert (-0.5, 3.5, 2.5, -0.5) == tuple(image.get_extent())
    assert "nearest" == image.get_interpolation()
    assert ("x (pixels)", "y (pixels)") == (axes.get_xlabel(), axes.get_ylabel())
    assert (0.0, 0.2, 1.0, 1.0) == axes.get_facecolor()
    figure = interactive.wall(WALL, region=REGION, background="#0033ff")
    assert "#0033ff" == figure.layout.plot_bgcolor
    assert "" == axes.get_title()


def scale(axes):
    """The label and the tick labels of the colour bar."""
    bar = axes.images[0].colorbar.ax
    return bar.get_ylabel(), [label.get_text() for label in bar.get_yticklabels()]


def test_age_is_in_units_of_time():
    """The time since the last write up to the last slot; recent writes are bright."""
    axes = plot.wall(WALL, show="age", region=REGION)

    # 10 and 15 slots of 12 seconds before the last write, which is in slot 40.
    expected = [[NAN, 2, 3, NAN], [NAN, 0, NAN, NAN], [NAN] * 4]
    assert np.array_equal(expected, cells(axes), equal_nan=True)
    assert "cividis_r" == axes.images[0].get_cmap().name
    label = "Last painted, before Oct 1, 2026"
    assert (label, ["newest", "1 minute ago", "2 minutes ago", "3 minutes ago"]) == scale(axes)


@pytest.mark.parametrize(
    ("slots", "ages"),
    [
        (7_200, ["newest", "5 hours ago", "10 hours ago", "15 hours ago", "20 hours ago"]),
        (86_400, ["newest", *(f"{n} days ago" for n in (2, 4, 6, 8, 10, 12))]),
        (
            10 * 50_400,
            ["newest", "2 weeks ago", "4 weeks ago", "6 weeks ago", "8 weeks ago", "10 weeks ago"],
        ),
        # Sixty days are still days.
        (60 * 7_200, ["newest", *(f"{n} days ago" for n in (10, 20, 30, 40, 50, 60))]),
        (4 * 2_629_800, ["newest", "1 year ago", "2 years ago", "3 years ago", "4 years ago"]),
    ],
)
def test_the_unit_of_the_age_fits_the_oldest_paint(slots, ages):
    """Hours, days, weeks or years; a day has 7,200 slots."""
    frame = paint((0, 1, 0, "00ff00", 9), (slots, 2, 0, "ff0000", 9))

    assert ages == scale(plot.wall(frame, show="age"))[1]
    (trace,) = interactive.wall(frame, show="age").data
    assert ages == [*trace.colorbar.ticktext]
    unit = ages[-1].split()[1].removesuffix("s")
    assert f"painted %{{z:.1~f}} {unit}s ago" in trace.hovertemplate


def test_overwrites_count_how_often_a_pixel_was_painted():
    """The second pixel was painted three times; the scale is in words."""
    axes = plot.wall(WALL, show="overwrites", region=REGION)

    assert np.array_equal(
        [[NAN, 3, 1, NAN], [NAN, 1, NAN, NAN], [NAN] * 4], cells(axes), equal_nan=True
    )
    assert ("Painted", ["once", "twice", "3 times"]) == scale(axes)


def test_many_overwrites_have_a_logarithmic_scale():
    """One pixel painted 200 times does not hide the difference between once and twice."""
    rows = [(slot, 3, 3, "00ff00", 1) for slot in range(200)]
    frame = paint(*rows, (300, 4, 3, "00ff00", 1), (301, 5, 3, "ff0000", 1))

    axes = plot.wall(frame, show="overwrites")

    words = ["once", "twice", *(f"{count} times" for count in (5, 10, 20, 50, 100, 200))]
    assert ("Painted", words) == scale(axes)
    shades = axes.images[0].to_rgba(np.array([1.0, 2.0]))
    assert 0.1 < np.abs(shades[0] - shades[1]).max()
    (trace,) = interactive.wall(frame, show="overwrites").data
    assert words == [*trace.colorbar.ticktext]
    assert {1, 200} == set(trace.customdata[np.isfinite(trace.customdata)])
    assert "painted %{customdata:,d} times" in trace.hovertemplate


def test_the_painted_area_is_drawn_by_default():
    """The axes have the true positions; a small area is extended; "all" is the whole wall."""
    frame = paint((1, 400, 10, "00ff00", 1), (2, 449, 12, "ff0000", 1))

    for options, left, right, top, bottom in (
        ({}, 400, 449, 2, 21),
        ({"region": "all"}, 0, 999, 0, 999),
    ):
        axes = plot.wall(frame, **options)
        assert (left - 0.5, right + 0.5) == axes.get_xlim()
        assert (bottom + 0.5, top - 0.5) == axes.get_ylim()
        row, column = np.argwhere(axes.images[0].get_array()[..., 3])[0]
        assert (400, 10) == (left + column, top + row)
        layout = interactive.wall(frame, **options).layout
        assert (left - 0.5, right + 0.5) == layout.xaxis.range
        assert (bottom + 0.5, top - 0.5) == layout.yaxis.range


def test_territory_has_a_legend_with_the_largest_first():
    """Nine holders have a colour; all others share grey; the legend counts pixels."""
    frame = paint(*((slot, slot % 20, 0, "abcdef", slot % 20 // 2) for slot in range(20)))
    frame = pl.concat([frame, paint(*((90 + x, x, 1, "abcdef", 5) for x in range(3)))])

    axes = plot.wall(frame, show="territory", region=(0, 0, 19, 1))

    texts = [label.get_text() for label in axes.get_legend().get_texts()]
    expected = ["5: 5", *(f"{index}: 2" for index in (0, 1, 2, 3, 4, 6, 7, 8)), "all others: 2"]
    assert expected == texts
    shades = [mpl.colors.to_hex(line.get_color()) for line in axes.get_legend().get_lines()]
    assert 10 == len(set(shades))
    assert colours.GREY == shades[-1]
    drawn = axes.images[0].to_rgba(axes.images[0].get_array())
    assert shades[0] == mpl.colors.to_hex(drawn[0, 10])
    assert shades[-1] == mpl.colors.to_hex(drawn[0, 18])
    assert "Validator: pixels" == axes.get_legend().get_title().get_text()


@pytest.mark.more
def test_territory_of_groups():
    """Validators without a group are all others."""
    axes = plot.wall(WALL, show="territory", groups={"ours": [8, 9]}, region=REGION)

    texts = [label.get_text() for label in axes.get_legend().get_texts()]
    assert ["ours: 2", "all others: 1"] == texts


def test_territory_of_painters_by_name():
    """Names in the legend, in both libraries; text of a name is inert."""
    names = {7: "Ada <b>$x$", 9: "Ada <b>$x$"}
    axes = plot.wall(WALL, show="territory", names=names, region=REGION)
    figure = interactive.wall(WALL, show="territory", names=names, region=REGION)

    assert "Painter: pixels" == axes.get_legend().get_title().get_text()
    texts = [label.get_text() for label in axes.get_legend().get_texts()]
    assert [r"Ada <b>\$x\$: 2", "validator 8: 1"] == texts
    expected = [[NAN, 0, 0, NAN], [NAN, 1, NAN, NAN], [NAN] * 4]
    assert np.array_equal(expected, cells(axes), equal_nan=True)
    assert "Painter: pixels" == figure.layout.legend.title.text
    assert ["Ada &lt;b&gt;&#36;x&#36;: 2", "validator 8: 1"] == [
        trace.name for trace in figure.data[1:]
    ]


def test_a_name_like_a_number_does_not_look_like_a_validator():
    """A painter that is called "8" is not validator 8."""
    axes = plot.wall(WALL, show="territory", names={7: "8"}, region=REGION)

    texts = [label.get_text() for label in axes.get_legend().get_texts()]
    assert {"8: 1", "validator 8: 1", "validator 9: 1"} == set(texts)


SHOWS = ["color", "age", "overwrites", "territory"]


@pytest.mark.parametrize("show", SHOWS)
def test_empty_walls_have_a_note(show):
    """No rows, or none in the region: a note, static and interactive."""
    for frame, region in ((WALL.head(0), (0, 0, 99, 99)), (WALL, (900, 900, 910, 910))):
        axes = plot.wall(frame, show=show, region=region)
        axes.get_figure().canvas.draw()
        figure = interactive.wall(frame, show=show, region=region)

        assert ["No pixels to draw"] == [note.get_text() for note in axes.texts]
        assert ["No pixels to draw"] == [note.text for note in figure.layout.annotations]


def test_the_note_of_an_empty_wall_is_readable():
    """White on a dark background."""
    for background, colour in (("black", "white"), ("white", "black")):
        axes = plot.wall(WALL.head(0), background=background)

        assert colour == axes.texts[0].get_color()


@pytest.mark.more
@pytest.mark.parametrize(
    ("show", "kind"), [*zip(SHOWS, [pl.DataFrame.lazy, to_pandas] * 2, strict=True)]
)
def test_other_frames_draw_the_same(show, kind):
    """Lazy and pandas frames."""
    expected = plot.wall(WALL, show=show, region=REGION)
    drawn = plot.wall(kind(WALL), show=show, region=REGION)

    assert np.array_equal(
        expected.images[0].get_array().filled(-1)
        if np.ma.isMA(expected.images[0].get_array())
        else expected.images[0].get_array(),
        drawn.images[0].get_array().filled(-1)
        if np.ma.isMA(drawn.images[0].get_array())
        else drawn.images[0].get_array(),
    )
    assert interactive.wall(WALL, show=show, region=REGION).to_json() == (
        interactive.wall(kind(WALL), show=show, region=REGION).to_json()
    )


@pytest.mark.more
@pytest.mark.parametrize("show", SHOWS)
def test_wall_charts_change_no_global_state(show):
    """Settings of matplotlib and plotly, and other axes, stay as they were."""
    before, template = dict(mpl.rcParams), plotly_io.templates.default
    figure, axes = plt.subplots()

    assert axes is plot.wall(WALL, show=show, region=REGION, ax=axes, alpha=0.5)
    interactive.wall(WALL, show=show, region=REGION)

    assert 0.5 == axes.images[0].get_alpha()
    assert [figure.number] == plt.get_fignums()
    assert before == dict(mpl.rcParams)
    assert template == plotly_io.templates.default


@pytest.mark.parametrize("draw", [plot.wall, interactive.wall])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"show": "colour"}, "show='colour'"),
        ({"region": (0, 0, 1000, 0)}, "region="),
        ({"background": "nocolour"}, "background="),
        ({"show": "territory", "groups": {"a": 1}}, "groups="),
    ],
)
def test_invalid_arguments_are_refused(draw, options, said):
    """The error has the value."""
    with pytest.raises(UsageError, match=said):
        draw(WALL, **options)


@pytest.mark.parametrize("steps", [0, 101, 1.5, True])
def test_invalid_steps_are_refused(steps):
    """A slider has from 1 to 100 steps."""
    with pytest.raises(UsageError, match="steps="):
        interactive.wall(WALL, steps=steps)


def history(figure):
    """The pictures of a figure, oldest first, and the hover layers, newest first."""
    pictures = [trace for trace in figure.data if "image" == trace.type]
    return pictures, [trace for trace in figure.data if "scattergl" == trace.type]


def test_the_slider_shows_the_wall_as_it_was():
    """Slots 10 to 40 in three steps, to 19, to 29 and to 40; the last is shown first."""
    figure = interactive.wall(WALL, region=REGION, steps=3)

    pictures, hovers = history(figure)
    for trace, last in zip(pictures, (19, 29, 40), strict=True):
        before = WALL.filter(pl.col("slot") <= last)
        assert look_alike(np.asarray(wall.render(before, region=REGION)), picture(trace))
        assert (0, 0) == (trace.x0, trace.y0)
    (slider,) = figure.layout.sliders
    assert ["10 (Oct 1, 2026)", "25 (Oct 1, 2026)", "40 (Oct 1, 2026)"] == [
        step.label for step in slider.steps
    ]
    assert 2 == slider.active
    assert [False, False, True] == [trace.visible for trace in pictures]
    assert [None] * 3 == [trace.visible for trace in hovers]
    # One picture at a time; hover layers add up, newest first.
    assert [
        [True, False, False, False, False, True],
        [False, True, False, False, True, True],
        [False, False, True, True, True, True],
    ] == [step.args[0]["visible"] for step in slider.steps]


def test_hover_texts_have_the_last_painter():
    """Of several writes to a pixel within a step: slot, time and validator of the last."""
    _, hovers = history(interactive.wall(WALL, region=REGION, steps=2))

    rows = [
        [
            (x, y, color, slot, validator, time)
            for x, y, color, (slot, validator), time in zip(
                *(trace.x, trace.y, trace.text, trace.customdata, trace.hovertext), strict=True
            )
        ]
        for trace in hovers
    ]
    assert [
        [
            (2, 0, "0000ff", 25, 7, "Oct 1, 2026, 00:05:00"),
            (1, 0, "00FF00", 30, 9, "Oct 1, 2026, 00:06:00"),
            (1, 1, "123456", 40, 8, "Oct 1, 2026, 00:08:00"),
        ],
        [(1, 0, "00ff00", 20, 8, "Oct 1, 2026, 00:04:00")],
    ] == rows
    for trace in hovers:
        assert 0 == trace.marker.opacity
        for part in ("%{x}", "%{y}", "%{text}", "slot %{customdata[0]}", "%{hovertext} UTC"):
            assert part in trace.hovertemplate
        assert "validator %{customdata[1]}" in trace.hovertemplate


def test_steps_in_which_nothing_changes_are_left_out():
    """The slider has only steps that change the picture; one state needs no slider."""
    frame = paint((0, 0, 0, "111111", 1), (99, 1, 0, "222222", 1))

    assert 2 == len(interactive.wall(frame, region=REGION, steps=50).layout.sliders[0].steps)
    assert () == interactive.wall(frame.head(1), region=REGION).layout.sliders


def test_more_colours_than_a_palette_has():
    """300 colours are exact in the interactive wall too."""
    frame = paint(*((i, i, 0, f"{i * 777:06x}", 1) for i in range(300)))

    (trace,), _ = history(interactive.wall(frame, region=(0, 0, 299, 0), steps=1))

    assert look_alike(np.asarray(wall.render(frame, region=(0, 0, 299, 0))), picture(trace))


def test_interactive_maps_match_the_static_ones():
    """The same numbers in the same colours, the largest holder at the top of the scale."""
    for show in ("age", "overwrites"):
        (trace,) = interactive.wall(WALL, show=show, region=REGION).data
        expected = cells(plot.wall(WALL, show=show, region=REGION))
        assert np.array_equal(expected, trace.z, equal_nan=True)
    figure = interactive.wall(WALL, show="territory", groups={"ours": [8, 9]}, region=REGION)
    trace, *swatches = figure.data
    assert [("ours: 2", colours.BLUE), ("all others: 1", colours.GREY)] == [
        (swatch.name, swatch.marker.color) for swatch in swatches
    ]
    assert figure.layout.showlegend
    assert not trace.showscale
    assert [["", "ours: 2", "all others: 1", ""], ["", "ours: 2", "", ""], [""] * 4] == (
        trace.text.tolist()
    )
    assert {colours.GREY, colours.BLUE} == {shade for _, shade in trace.colorscale}


@pytest.mark.more
@pytest.mark.parametrize("show", SHOWS)
def test_an_interactive_wall_fits_any_page(show):
    """Without a width, a page of 360 pixels shows all of it; the colour bar is below."""
    figure = interactive.wall(WALL, show=show, region=REGION)

    assert figure.layout.width is None
    if show in {"age", "overwrites"}:
        assert "h" == figure.data[0].colorbar.orientation
    sized = interactive.wall(WALL, show=show, figsize=(9, 5)).layout
    assert (900, 500) == (sized.width, sized.height)


def test_the_caption_of_a_wall_is_readable_on_a_dark_figure():
    """Step 12, 9: the wall has the colour of paper also there, but its caption is beside it."""
    figures = []
    for style in ("default", "dark_background"):
        with plt.style.context(style):
            axes = plot.wall(WALL, region=REGION)
        (caption,) = (text for text in axes.texts if text.get_gid() == "caption")
        figures.append(colours.Theme(to_hex(axes.figure.get_facecolor())).adapt(colours.RULE))
        assert figures[-1] == caption.get_color()
    assert figures[0] != figures[1]


@pytest.mark.more
def test_a_narrow_wall_has_its_scale_below():
    """At 360 pixels, a bar or a legend beside the wall would take half of it."""
    for width, is_below in ((3.6, True), (8, False)):
        age = plot.wall(WALL, show="age", region=REGION, figsize=(width, 3.6))
        held = plot.wall(WALL, show="territory", region=REGION, figsize=(width, 3.6))
        for axes in (age, held):
            axes.figure.draw_without_rendering()
        bar, legend = age.images[0].colorbar.ax.get_window_extent(), held.get_legend()
        assert is_below == (bar.y1 < age.get_window_extent().y0)
        assert is_below == (legend.get_window_extent().y1 < held.get_window_extent().y0)


def test_a_saved_wall_needs_no_network_and_uploads_nothing():
    """The page contains everything: no file, no link, and no upload button."""
    figure = interactive.wall(WALL, region=REGION)
    page = figure.to_html()

    assert [] == re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=[\"'](?!data:)h", page)
    assert not re.search(r"<script[^>]+src=", page)
    removed = figure.layout.template.layout.modebar.remove
    assert {"sendChartToCloud", "sendDataToCloud"} <= set(removed)
    assert figure.layout.modebar.remove is None
    for key in ("showSendToCloud", "plotlyServerURL", "showEditInChartStudio", "showLink"):
        assert f'"{key}"' not in page


@pytest.mark.more
def test_the_wall_of_blocks_matches_the_endpoint(explorer):
    """A wall rebuilt from the graffiti of all blocks has the same rows as the service's own."""
    import beaconframes as bf

    blocks = bf.load_epoch_slots(since=390, until=419)

    rebuilt = wall.from_blocks(blocks)

    served = bf.load_graffiti_wall(since=390 * 32, until=419 * 32 + 31)
    assert rebuilt.height > 200
    assert served.equals(rebuilt.select(served.columns))
    assert np.array_equal(np.asarray(wall.render(served)), np.asarray(wall.render(rebuilt)))
    texts = "0x" + b"gw:".hex(), "0x" + b"graffitiwall:".hex()
    assert all(blocks["graffiti"].str.starts_with(text).any() for text in texts)
