"""The charts of a report: from its frames to SVG, or to plotly."""

from __future__ import annotations

import dataclasses
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.luck import build_luck_chart
from beaconframes.charts.model import Area, Axis, Bars, Chart, Heatmap, Line, ReferenceLine
from beaconframes.text import for_matplotlib, for_plotly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beaconframes.charts.model import Floats, Layer, Positions

Frames = dict[str, pl.DataFrame]

FEW_VALIDATORS = 30
"""Up to this many validators have a chart each; above, quantiles and the worst ten are drawn."""
_WORST = 10
_STRIPS = 30
_LEVEL = 0.95
_COLUMNS = 200
_DAY = np.timedelta64(1, "D")
_BAR: Any = np.timedelta64(19, "h")
_WIDTH = 7.4
_PARTS = {
    "attestation_reward_gwei": ("Attestations", colours.BLUE),
    "proposal_reward_gwei": ("Block proposals", colours.AMBER),
    "sync_committee_reward_gwei": ("Sync committee", colours.CYAN),
    "slashing_reward_gwei": ("Slashing rewards", colours.KHAKI),
    "consensus_income_gwei": ("Consensus layer", colours.BLUE),
    "execution_income_wei": ("Execution income", colours.PURPLE),
    "attestation_penalty_gwei": ("Attestation penalties", colours.RED),
    "finality_delay_penalty_gwei": ("Finality delay penalties", colours.BROWN),
    "sync_committee_penalty_gwei": ("Sync committee penalties", colours.ORANGE),
    "slashing_penalty_gwei": ("Slashing penalties", colours.SLATE),
}
_GREY, _FAINT = "#7d8593", "rgba(128, 136, 150, 0.25)"
"""Text and grid of interactive charts: readable on light and on dark pages."""
_VARIABLES = {
    colours.INK: "ink",
    colours.RULE: "rule",
    colours.GRID: "grid",
    colours.SLATE: "slate",
    colours.PAPER: "paper",
    "#000000": "ink",
}
"""Colours of an SVG that follow the reader's setting; colours of data are readable on both."""


@dataclass(frozen=True)
class Picture:
    """A chart of a report, and what it shows for readers who do not see it."""

    name: str
    title: str
    alt: str
    charts: tuple[Chart, ...]
    labels: tuple[str, ...] = ()
    """Titles of small multiples."""
    height: float = 2.6


def build_pictures(frames: Frames, *, interactive: bool = False) -> dict[str, Picture]:
    """Return the charts whose frames exist, by name."""
    escape = for_plotly if interactive else for_matplotlib
    found = (
        *(build(frames) for build in _PICTURES[:_LUCK_PLACE]),
        _draw_luck(frames, escape),
        *(build(frames) for build in _PICTURES[_LUCK_PLACE:]),
    )
    return {picture.name: picture for picture in found if picture is not None}


def _read_days(rows: pl.DataFrame, name: str = "date") -> Positions:
    return rows[name].to_numpy().astype("datetime64[us]")


def _size_bars(times: Positions) -> Positions:
    """Return the width of bars of one day each."""
    return np.full(len(times), _BAR)


def _read_eth(rows: pl.DataFrame, name: str) -> Floats:
    per_eth = 1e18 if name.endswith("_wei") else 1e9
    return rows[name].cast(pl.Float64).to_numpy() / per_eth


def _time_axis(times: Positions) -> Axis:
    return Axis("Day", time_unit="day", times=times)


def _draw_income(frames: Frames) -> Picture | None:
    """Stack the components of income by day; without components, the two layers."""
    if "income" not in frames:
        return None
    rows = frames["income"]
    times = _read_days(rows)
    has_parts = "attestation_reward_gwei" in rows.columns
    names = [
        n for n in _PARTS if n in rows.columns and (n != "consensus_income_gwei" or not has_parts)
    ]
    top, bottom = np.zeros(rows.height), np.zeros(rows.height)
    layers, legend = [], []
    for name in names:
        if rows[name].null_count():
            continue
        height = _read_eth(rows, name)
        if not height.any():
            continue
        title, colour = _PARTS[name]
        base = bottom - height if "penalty" in name else top
        layers.append(Bars(times, height, title, colour, base=base.copy(), width=_size_bars(times)))
        legend.append(title)
        if "penalty" in name:
            bottom = bottom - height
        else:
            top = top + height
    total = int(rows["consensus_income_gwei"].sum()) / 1e9
    alt = f"Bars of income per day by component: {rows.height} days, {total:.4f} ETH of consensus."
    chart = Chart(
        _time_axis(times), Axis("ETH", zero_line=True), tuple(layers), legend=tuple(legend)
    )
    return Picture("income", "Income by component", alt, (chart,))


def _draw_rates(frames: Frames) -> Picture | None:
    """Draw the yearly rate beside the yield index."""
    if "rates" not in frames or frames["rates"].is_empty() or "days" not in frames:
        return None
    rows = frames["rates"]
    times = _read_days(frames["days"].select(pl.min("date")))
    times = times + (rows["day"] - rows["day"][0]).to_numpy() * _DAY
    layers: list[Layer] = []
    for name, title, colour in (
        ("apr_on_effective", "Own rate", colours.BLUE),
        ("index_apr", "Yield index", colours.AMBER),
    ):
        if name in rows.columns and rows[name].null_count() < rows.height:
            y = 100 * rows[name].cast(pl.Float64).to_numpy()
            layers.append(Line(times, y, title, colour, marked=True))
    if not layers:
        return None
    legend = tuple(layer.name for layer in layers if isinstance(layer, Line))
    chart = Chart(_time_axis(times), Axis("Yearly rate (%)"), tuple(layers), legend=legend)
    alt = f"Lines of the yearly rate per day beside the yield index, {rows.height} days."
    return Picture("rates", "Yearly rate", alt, (chart,))


def _draw_effectiveness(frames: Frames) -> Picture | None:
    """Draw the effectiveness of votes by day, with that of the network."""
    if "effectiveness" not in frames or frames["effectiveness"].is_empty():
        return None
    rows = frames["effectiveness"]
    name = "effectiveness" if "effectiveness" in rows.columns else "included_rate"
    times = _read_days(rows)
    y = 100 * rows[name].cast(pl.Float64).to_numpy()
    title = "Effectiveness" if name == "effectiveness" else "Votes included"
    layers: list[Layer] = [Line(times, y, title, colours.BLUE, marked=True)]
    legend = [title]
    if "network" in frames:
        rest = frames["network"].filter(pl.col("measure") == name)["network"]
        if rest.len() and rest[0] is not None:
            layers.append(ReferenceLine(100 * rest[0], "Network"))
            legend.append("Network")
    chart = Chart(
        _time_axis(times), Axis(f"{title} (%)", maximum=100.5), tuple(layers), legend=tuple(legend)
    )
    alt = f"Line of the effectiveness of votes per day, from {y.min():.2f} to {y.max():.2f} %."
    return Picture(
        "effectiveness", f"{title} of votes" if name == "effectiveness" else title, alt, (chart,)
    )


def _draw_balances(frames: Frames) -> Picture | None:
    """Draw the balances at the end of each day: the median, and where most are."""
    if "balances" not in frames or frames["balances"].is_empty():
        return None
    rows = frames["balances"]
    times = _read_days(rows)
    low, middle, high = (_read_eth(rows, f"balance_p{q}_gwei") for q in (10, 50, 90))
    layers = (
        Area(times, low, high, "10 % to 90 %", colours.BLUE, opacity=0.25),
        Line(times, middle, "Median", colours.BLUE),
    )
    chart = Chart(
        _time_axis(times), Axis("Balance (ETH)"), layers, legend=("Median", "10 % to 90 %")
    )
    alt = f"Median balance per day, from {middle[0]:.4f} to {middle[-1]:.4f} ETH."
    return Picture("balances", "Balances", alt, (chart,))


def _draw_validators(frames: Frames) -> Picture | None:
    """Draw income by validator: one small chart each, or quantiles and the worst ten."""
    if "days" not in frames:
        return None
    days = frames["days"]
    name = "net_income_wei" if days["net_income_wei"].null_count() == 0 else "consensus_income_gwei"
    rows = days.select("date", "validator_index", income=pl.col(name).cast(pl.Float64))
    rows = rows.with_columns(pl.col("income") / (1e18 if name.endswith("_wei") else 1e9))
    count = rows["validator_index"].n_unique()
    if 1 < count <= FEW_VALIDATORS:
        return _draw_small_multiples(rows)
    if count == 1:
        return None
    spread = (
        rows.group_by("date")
        .agg(
            low=pl.col("income").quantile(0.1),
            middle=pl.col("income").median(),
            high=pl.col("income").quantile(0.9),
        )
        .sort("date")
    )
    times = _read_days(spread)
    worst = (
        rows.group_by("validator_index")
        .agg(pl.sum("income"))
        .sort("income", "validator_index")
        .head(_WORST)["validator_index"]
    )
    layers: list[Layer] = [
        Area(times, spread["low"].to_numpy(), spread["high"].to_numpy(), "10 % to 90 %",
             colours.BLUE, opacity=0.25)
    ]  # fmt: skip
    for validator in worst:
        own = rows.filter(pl.col("validator_index") == validator).sort("date")
        line = Line(_read_days(own), own["income"].to_numpy(), "Worst ten", colours.RED, 0.8, 0.6)
        layers.append(line)
    layers.append(Line(times, spread["middle"].to_numpy(), "Median", colours.BLUE))
    chart = Chart(
        _time_axis(times),
        Axis("ETH per validator", zero_line=True),
        tuple(layers),
        legend=("Median", "10 % to 90 %", "Worst ten"),
    )
    names = ", ".join(str(index) for index in worst)
    alt = f"Income per validator and day: median, and the ten with the least income: {names}."
    return Picture("validators", "Income by validator", alt, (_name_once(chart),))


def _name_once(chart: Chart) -> Chart:
    """Keep the name of one line of each kind, for the legend."""
    seen: set[str] = set()
    layers: list[Layer] = []
    for layer in chart.layers:
        name = getattr(layer, "name", None)
        if isinstance(layer, Line) and name in seen:
            layers.append(dataclasses.replace(layer, name="_"))
        else:
            layers.append(layer)
        seen.add(str(name))
    return Chart(chart.x, chart.y, tuple(layers), legend=chart.legend)


def _draw_small_multiples(rows: pl.DataFrame) -> Picture:
    charts, labels = [], []
    for (validator,), own in rows.sort("date").group_by("validator_index", maintain_order=True):
        times = _read_days(own)
        bars = Bars(times, own["income"].to_numpy(), None, colours.BLUE, width=_size_bars(times))
        charts.append((validator, Chart(_time_axis(times), Axis("", zero_line=True), (bars,))))
    charts.sort(key=lambda item: item[0])
    labels = [str(validator) for validator, _ in charts]
    return Picture(
        "validators",
        "Income by validator (ETH per day)",
        f"One small chart of income per day for each of {len(charts)} validators.",
        tuple(chart for _, chart in charts),
        tuple(labels),
        0.4 + 1.1 * _arrange(len(charts))[0],
    )


def _draw_proposals(frames: Frames) -> Picture | None:
    """Draw proposals by day and outcome."""
    if "proposals" not in frames or frames["proposals"].is_empty():
        return None
    rows = frames["proposals"].with_columns(date=pl.col("time").dt.date())
    counts = (
        rows.group_by("date")
        .agg(
            *(
                (pl.col("status") == name).sum().cast(pl.Int64).alias(name)
                for name in ("proposed", "missed", "orphaned")
            )
        )
        .sort("date")
    )
    times, base = _read_days(counts), np.zeros(counts.height)
    layers, legend = [], []
    for name, colour in (
        ("proposed", colours.BLUE),
        ("missed", colours.RED),
        ("orphaned", colours.AMBER),
    ):
        height = counts[name].cast(pl.Float64).to_numpy()
        if height.any():
            title = name.capitalize()
            layers.append(
                Bars(times, height, title, colour, base=base.copy(), width=_size_bars(times))
            )
            legend.append(title)
            base = base + height
    total = counts.select(pl.sum("proposed", "missed", "orphaned")).row(0)
    alt = "Proposals per day: {} proposed, {} missed, {} orphaned.".format(*total)
    chart = Chart(
        _time_axis(times), Axis("Proposals", integers=True), tuple(layers), legend=tuple(legend)
    )
    return Picture("proposals", "Proposals", alt, (chart,))


def _draw_luck(frames: Frames, escape: Callable[[object, int], str]) -> Picture | None:
    """Draw the number of proposals beside what chance gives, of each group or of all."""
    if "luck" not in frames or "income" not in frames:
        return None
    groups = ["group"] if "group_luck" in frames else []
    table = frames["group_luck" if groups else "luck"]
    table = table.filter(pl.col("expected") > 0)
    if table.is_empty():
        return None
    times = _read_days(frames["income"])
    chart = build_luck_chart({"Proposals": table}, groups, times, level=_LEVEL, escape=escape)
    drawn, expected = table.select(pl.sum("drawn"), pl.sum("expected")).row(0)
    return Picture(
        "luck",
        "Proposals, compared with chance",
        f"Actual proposals beside the range of chance: {drawn} of {expected:.1f} expected.",
        (chart,),
        height=1.6 + 0.32 * min(table.height, 10),
    )


def _draw_sync(frames: Frames) -> Picture | None:
    """Draw strips of the share of sync committee duties that each member signed."""
    if "sync_epochs" not in frames or frames["sync_epochs"].is_empty():
        return None
    rows = frames["sync_epochs"]
    paid = pl.sum("reward_gwei") + pl.sum("penalty_gwei")
    members = (
        rows.group_by("validator_index")
        .agg(rate=pl.sum("reward_gwei") / paid)
        .sort("rate", "validator_index")
        .head(_STRIPS)["validator_index"]
        .sort()
    )
    first, last = rows.select(pl.min("epoch"), last=pl.max("epoch")).row(0)
    step = -(-(last - first + 1) // _COLUMNS)
    column = ((pl.col("epoch") - first) // step).alias("column")
    place = pl.DataFrame({"validator_index": members}).with_row_index("row")
    cells = (
        rows.group_by("validator_index", column)
        .agg(rate=100 * pl.sum("reward_gwei") / paid)
        .join(place, on="validator_index")
    )
    size = (last - first) // step + 1
    table = np.full((members.len(), size), np.nan)
    table[cells["row"].to_numpy(), cells["column"].to_numpy()] = cells["rate"].to_numpy()
    start = series.to_datetime64(rows.select(pl.min("time"))["time"])[0]
    span = _measure_epoch(rows)
    heatmap = Heatmap(
        start, step * span, [str(index) for index in members], table, shares="Signed (%)"
    )
    times = start + np.arange(size) * step * span
    chart = Chart(Axis("Time (UTC)", time_unit="epoch", times=times), Axis("Validator"), (heatmap,))
    alt = f"Strips of the share of sync committee duties signed, for {members.len()} members."
    return Picture("sync", "Sync committees", alt, (chart,), height=1.1 + 0.12 * members.len())


def _measure_epoch(rows: pl.DataFrame) -> np.timedelta64:
    """Return the length of an epoch, from the times of the rows."""
    ends = rows.select("epoch", "time").unique().sort("epoch")
    epochs = ends["epoch"][-1] - ends["epoch"][0]
    if not epochs:
        return np.timedelta64(384, "s")
    seconds = (ends["time"][-1] - ends["time"][0]).total_seconds() / epochs
    return np.timedelta64(round(seconds * 1e6), "us")


def _draw_withdrawals(frames: Frames) -> Picture | None:
    """Draw withdrawals by day."""
    if "withdrawals" not in frames or frames["withdrawals"].is_empty():
        return None
    rows = frames["withdrawals"]
    times, height = _read_days(rows), _read_eth(rows, "withdrawals_gwei")
    chart = Chart(
        _time_axis(times),
        Axis("ETH"),
        (Bars(times, height, None, colours.BLUE, width=_size_bars(times)),),
    )
    alt = f"Bars of withdrawals per day, {height.sum():.4f} ETH in total."
    return Picture("withdrawals", "Withdrawals", alt, (chart,), height=2.0)


_PICTURES: tuple[Callable[[Frames], Picture | None], ...] = (
    _draw_income,
    _draw_rates,
    _draw_validators,
    _draw_effectiveness,
    _draw_balances,
    _draw_proposals,
    _draw_sync,
    _draw_withdrawals,
)


_LUCK_PLACE = _PICTURES.index(_draw_sync)


def render_svg(picture: Picture) -> str:
    """Return a picture as SVG for a page: its colours follow the reader's setting."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from beaconframes.plot import canvas
    from beaconframes.plot.style import style

    options: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": picture.name,
        # Formulas in tick labels take half of the time.
        "axes.formatter.use_mathtext": False,
    }
    with style(), mpl.rc_context(options):
        figure = Figure(figsize=(_WIDTH, picture.height), layout="constrained")
        for axes, chart, label in _iterate_axes(figure, picture):
            canvas.draw_chart(chart, {}, caption="", ax=axes)
            if label is not None:
                _reduce(axes, label)
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _adapt_svg(file.getvalue(), picture)


def _iterate_axes(figure: Any, picture: Picture) -> Iterator[tuple[Any, Chart, str | None]]:
    """Yield the Axes of each chart of a picture, with the label of a small multiple."""
    if not picture.labels:
        yield figure.subplots(), picture.charts[0], None
        return
    lines, columns = _arrange(len(picture.charts))
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[len(picture.charts) :]:
        axes.set_visible(False)
    yield from zip(grid, picture.charts, picture.labels, strict=False)


def _arrange(count: int) -> tuple[int, int]:
    """Return lines and columns of small multiples."""
    columns = min(count, 5)
    return -(-count // columns), columns


def _reduce(axes: Any, label: str) -> None:
    """Make the Axes of a small multiple: a title, and few ticks."""
    from matplotlib import dates
    from matplotlib.ticker import MaxNLocator

    axes.set_title(label, fontsize=8)
    axes.set_xlabel("")
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%b %d", tz="UTC"))  # type: ignore[no-untyped-call]
    axes.tick_params(labelsize=7)


def _adapt_svg(text: str, picture: Picture) -> str:
    """Return the SVG element alone, with variables for the colours of text, rules and paper."""
    text = text[text.index("<svg") :]
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for colour, name in _VARIABLES.items():
        text = text.replace(colour, f"var(--{name}, {colour})")
    # Coordinates to a tenth of a point: a third of the size. Text between tags stays.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r"\n\s*", "\n", text)
    # The same identifiers may occur in another picture of the page.
    text = re.sub(r'(id="|url\(#|href="#)', rf"\1{picture.name}-", text)
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def render_plotly(picture: Picture) -> str:
    """Return a picture as an interactive chart, without the library."""
    from beaconframes.interactive.figure import build_figure

    if picture.labels:
        return render_svg(picture)
    figure = build_figure(picture.charts[0], {"height": 380})
    clear = "rgba(0, 0, 0, 0)"
    figure.update_layout(paper_bgcolor=clear, plot_bgcolor=clear, font_color=_GREY)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=_FAINT, linecolor=_GREY, tickcolor=_GREY, tickfont_color=_GREY)
    page: str = figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"chart-{picture.name}"
    )
    return page
