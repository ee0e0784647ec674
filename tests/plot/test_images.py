"""Pictures of the static charts, compared with reviewed baselines.

Regenerate them with
``pytest tests/plot/test_images.py --mpl-generate-path=tests/plot/baseline``, and look at each
picture before you commit it. The lock file pins matplotlib, which brings its font renderer, so that
pictures are equal on one kind of processor. The tolerance is for other processors.
"""

import polars as pl
import pytest
from matplotlib import pyplot as plt

from beaconframes import plot

from ..support.cases import every
from ..support.chart_frames import CHARTS, blocks, committee, income

SMALL = {"dpi": 60, "metadata": {"Software": None}}


def picture(**more):
    return pytest.mark.mpl_image_compare(
        baseline_dir="baseline", style="default", savefig_kwargs=SMALL, tolerance=1, **more
    )


# One picture per chart; other options are tested by their artists.
LOOKED_AT = [
    "income by component",
    "income by validator",
    "balances in total",
    "yield of layers",
    "yield",
    "participation",
    "members",
    "matrix of members",
    "attestations",
    "inclusion distance",
    "proposals",
    "rewards of proposals",
    "luck",
    "deposits",
    "leaderboard",
    "gas fees",
    "coverage",
    "index coverage",
]


@pytest.mark.parametrize(
    "name", every(3, LOOKED_AT), ids=[name.replace(" ", "_") for name in LOOKED_AT]
)
@picture()
def test_chart_matches_baseline(name):
    """Every chart, small, of a frame made by hand."""
    chart, frame, others, options = CHARTS[name]

    return getattr(plot, chart)(frame(), *others, **options).figure


@picture(filename="two_charts.png")
def test_charts_share_a_figure():
    """Two charts in one figure of the caller: neither takes the other's room."""
    with plot.style():
        figure, (left, right) = plt.subplots(ncols=2, figsize=(10, 3.5), layout="constrained")
        plot.income(income(range(100, 400)), by="component", ax=left)
        frame = blocks("proposed", "missed", *["proposed"] * 6, signed=2)
        plot.sync_members(frame, committee([9, 5, 7]), show="matrix", ax=right)
    return figure


def penalized():
    """An income with small penalties, incomplete on its first and its last day."""
    return income(
        range(100, 400),
        attestation_head_reward_gwei=1_000_000,
        tx_fee_reward_wei=2 * 10**14,
        attestation_target_penalty_gwei=3_000,
        slashing_penalty_gwei=1_000,
    )


@picture(filename="dark.png")
def test_chart_on_a_dark_theme():
    """Two panels, hatches, legend, grid and caption on a dark background."""
    with plt.style.context("dark_background"):
        return plot.income(penalized(), by="component").figure


@picture(filename="phone.png")
def test_chart_at_360_pixels():
    """Bands of many validators, with a title; legend and caption are below."""
    frame = income(range(113, 113 + 2 * 225, 10), range(60)).with_columns(
        attestation_head_reward_gwei=pl.col("validator_index") * 1_000
    )
    return plot.income(frame, by="validator", title="Income", figsize=(3.6, 3.6)).figure
