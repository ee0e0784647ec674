"""Which charts a report has, and what is in them."""

import re

import polars as pl

from beaconframes.reports.pictures import FEW_VALIDATORS, build_pictures
from beaconframes.reports.renderers import render_svg


def list_names(picture):
    (chart,) = picture.charts
    return [layer.name for layer in chart.layers]


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


def test_small_amounts_have_no_factor_above_the_axis(made):
    """Penalties of 0.0002 ETH are not drawn as -2, with a small 1e-4 in the corner."""
    picture = build_pictures(made.report.frames, interactive=False)["income"]
    svg = render_svg(picture)
    assert not re.search(r">\s*1e", svg)
