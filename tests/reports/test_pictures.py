"""Which charts a report has, and what is in them."""

import re
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from beaconframes.client import Explorer
from beaconframes.colours import CYCLE, TEAL, Theme
from beaconframes.interactive.figure import build_figure
from beaconframes.plot import canvas
from beaconframes.reports.page import _read
from beaconframes.reports.parts.over_time import _read_window
from beaconframes.reports.pictures import FEW_VALIDATORS, build_pictures
from beaconframes.reports.renderers import _VARIABLES, _adapt_svg, render_svg
from beaconframes.reports.report import report


def list_names(picture):
    (chart,) = picture.charts
    return [layer.name for layer in chart.layers]


def test_balances_that_hardly_differ_have_no_axis_of_millionths(made):
    """Balances between withdrawals: the axis has at least a hundredth of an ETH."""
    balances = made.report.frames["balances"].with_columns(
        pl.lit(32_000_010_000 + share).alias(f"balance_p{share}_gwei") for share in (10, 50, 90)
    )
    (chart,) = build_pictures(made.report.frames | {"balances": balances})["balances"].charts
    assert pytest.approx((31.99501005, 32.00501005)) == chart.y.include

    axes = Figure().subplots()
    canvas.draw_chart(chart, {}, caption="", ax=axes)
    low, high = axes.get_ylim()
    assert low <= min(chart.y.include)
    assert max(chart.y.include) <= high
    layout = build_figure(chart, {}, caption="").layout
    assert chart.y.include == layout.yaxis.autorangeoptions.include


def test_components_of_income_or_the_two_layers(made):
    """Penalties have a panel with a scale of their own; daily statistics have no components."""
    frames = made.report.frames
    income = frames["income"]
    layers = ["date", "consensus_income_gwei", "execution_income_wei", "net_income_wei"]

    pictures = build_pictures(frames)
    daily = build_pictures({"income": income.select(layers)})

    assert "Attestations" in list_names(pictures["income"])
    panel = pictures["income"].charts[0].panel
    assert any("penalties" in layer.name for layer in panel.layers)
    assert ["Consensus layer", "Execution income"] == list_names(daily["income"])
    unknown = income.select(layers).with_columns(execution_income_wei=pl.lit(None, pl.Decimal(28)))
    assert ["Consensus layer"] == list_names(build_pictures({"income": unknown})["income"])


def test_few_validators_have_a_chart_each(made):
    """Above 30: the median, where most are, and the worst ten, once in the legend."""
    days = made.report.frames["days"]
    more = pl.concat(
        days.with_columns(pl.col("validator_index") + 1000 * step)
        for step in range(FEW_VALIDATORS // 6 + 1)
    )

    few = build_pictures({"days": days})["validators"]
    many = build_pictures({"days": more})["validators"]

    assert ("3", "5", "8", "11", "40", "41") == few.labels
    assert 6 == len(few.charts)
    names = list_names(many)
    assert ["10 % to 90 %", "Worst ten", *["_"] * 9, "Median"] == names
    assert "3: 0.0" in few.alt


def test_lines_leave_out_the_first_and_the_last_day():
    """Issue 19: the income of some epochs looks like a loss beside that of whole days.

    Rates are left out where they are mostly chance: with less than half of the epochs.
    """
    dates = [date(2026, 1, day) for day in range(1, 5)]
    votes = {"date": dates, "votes": [120, 225, 225, 10], "effectiveness": [0.9] * 4}
    frames = {
        "effectiveness": pl.DataFrame(votes),
        "income": pl.DataFrame(
            {
                "date": dates,
                "consensus_income_gwei": [10**6] * 4,
                "complete": [False, True, True, False],
            }
        ),
        "days": pl.DataFrame(
            {
                "date": [day for day in dates for _ in range(40)],
                "validator_index": [*range(40)] * 4,
                "net_income_wei": pl.Series([10**15] * 160, dtype=pl.Decimal(28)),
            }
        ),
    }

    def list_days(frames, name, layer):
        (chart,) = build_pictures(frames)[name].charts
        times = next(each for each in chart.layers if each.name == layer).x
        return [str(day) for day in times.astype("datetime64[D]")]

    middle = ["2026-01-02", "2026-01-03"]
    assert ["2026-01-01", *middle] == list_days(frames, "effectiveness", "Effectiveness")
    assert middle == list_days(frames, "validators", "Median")
    short = pl.DataFrame(votes | {"votes": [112, 225, 225, 10]})
    assert middle == list_days(frames | {"effectiveness": short}, "effectiveness", "Effectiveness")
    # Of two days, none is left out.
    few = {name: frame.filter(pl.col("date") < dates[2]) for name, frame in frames.items()}
    assert 2 == len(list_days(few, "effectiveness", "Effectiveness"))


@pytest.mark.more
@pytest.mark.parametrize("tz", ["UTC", "Asia/Tokyo"])
def test_bars_of_incomplete_days_are_hatched(running, tz):
    """The report begins and ends within a day; without the stripes, it shows a loss of income."""
    chain = running.service.chain
    validators = [*range(30)]
    begin, end = chain.time_of("epoch", 60), chain.time_of("epoch", 441)
    with Explorer(running.url, chain=chain, head=running.service.head) as explorer:
        made = report(validators, since=60, until=440, tz=tz, explorer=explorer)

    pictures = build_pictures(made.frames)

    zone = ZoneInfo(tz)
    incomplete = {moment.astimezone(zone).date() for moment in (begin, end)}
    days = made.frames["income"]
    assert incomplete == set(days.filter(~pl.col("complete"))["date"])
    for name in ("income", "proposals", "withdrawals", "validators"):
        chart = pictures[name].charts[0]
        assert "hatched where incomplete" in chart.x.label, name
        for bars in (*chart.layers, *(chart.panel.layers if chart.panel else ())):
            hatched = bars.x[bars.incomplete].astype("datetime64[D]").tolist()
            assert set(hatched) == incomplete & set(bars.x.astype("datetime64[D]").tolist()), name
    assert pictures["validators"].title.endswith(", hatched where incomplete)")


@pytest.mark.more
def test_yearly_rates_are_at_the_dates_on_which_days_of_the_chain_begin(running):
    """As in the chart of the yield index. The report begins in the morning, the day at noon."""
    chain = running.service.chain
    with Explorer(running.url, chain=chain, head=running.service.head) as explorer:
        made = report([3, 5], since=150, until=440, explorer=explorer)

    (chart,) = build_pictures(made.frames)["rates"].charts

    begins = [chain.time_of("day", day).date() for day in (0, 1)]
    assert begins == made.frames["rates"]["date"].to_list()
    assert begins == chart.layers[0].x.astype("datetime64[D]").tolist()
    assert begins[1] == made.frames["income"]["date"][0]


def test_small_multiples_are_pictures_of_their_own(made):
    """Issue 19: the page arranges them in as many columns as fit; all have the same scale."""
    picture = build_pictures(made.report.frames)["validators"]

    parts = render_svg(picture).split("<svg")[1:]

    assert list(picture.labels) == [
        re.search(r">(\d+)</text>\s*</g>\s*</g>\s*</g>", part)[1] for part in parts
    ]
    ticks = [re.findall(r">(0\.\d+)</text>", part) for part in parts]
    assert len(ticks[0]) > 1
    assert [ticks[0]] * 6 == ticks


def test_an_unknown_window_of_the_network_is_left_out(made):
    """A source that does not state its window has no range in the legend, and no row is lost."""
    network = pl.DataFrame({"first_epoch": [None], "last_epoch": [5]})
    unknown = _read_window(network, made.inputs.chain)
    frames = made.report.frames
    table = frames["network"].drop("since", "until").join(unknown, how="cross")

    picture = build_pictures(frames | {"network": table})["effectiveness"]

    assert (None, None) == unknown.row(0)
    assert ("Effectiveness", "Network") == picture.charts[0].legend


def test_series_have_the_colours_of_the_theme_on_dark_pages():
    """The variables of a page have the colours of charts, which tests of charts compare."""
    css = _read("report.css")
    light, dark = css[: css.index("@media")], css[css.index("@media") : css.index("*{box-sizing")]
    for page, theme in ((light, Theme()), (dark, Theme("#14181f"))):
        for colour in (*CYCLE, TEAL):
            name = _VARIABLES.get(colour)
            shown = re.search(rf"--{name}:(#\w+)", page)[1] if name else colour
            assert theme.adapt(colour) == shown
            if theme.is_dark and shown != colour:
                # The same in charts of plotly.
                parts = ", ".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
                assert f'fill: rgb({parts})"]{{fill:var(--{name})' in css
    assert "--paper:#14181f;" in dark


def test_small_amounts_have_no_factor_above_the_axis(made):
    """Penalties of 0.0002 ETH are not drawn as -2, with a small 1e-4 in the corner."""
    picture = build_pictures(made.report.frames, interactive=False)["income"]
    svg = render_svg(picture)
    assert not re.search(r">\s*1e", svg)


def test_proposals_are_drawn_on_days_of_the_time_zone(made):
    """A block of 22:30 UTC belongs to the next day in Berlin, as its income does."""
    blocks = (
        made.report.frames["proposals"]
        .head(1)
        .with_columns(
            time=pl.lit(datetime(2026, 10, 1, 22, 30, tzinfo=UTC)).dt.cast_time_unit("us")
        )
    )
    facts = pl.DataFrame({"fact": ["detail", "days"], "value": ["every epoch", "Europe/Berlin"]})

    (chart,) = build_pictures({"proposals": blocks, "facts": facts})["proposals"].charts

    assert np.datetime64("2026-10-02") == chart.x.times[0].astype("datetime64[D]")


def test_the_last_digits_of_coordinates_leave_a_page_as_it_is():
    """The layout of a figure rounds differently in each process, and clip paths are its hashes."""
    svg = '<svg><g clip-path="url(#{0})"/><clipPath id="{0}"/></svg>'

    first, second = (_adapt_svg(svg.format(name), "luck") for name in ("p1ca63700", "p4004b771"))

    assert first == second
    assert 'url(#luck-clip0)"/><clipPath id="luck-clip0"' in first
