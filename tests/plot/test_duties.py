"""Chart of duties: the last day of attestations, and what comes next."""

from datetime import timedelta

import numpy as np
import pytest

from beaconframes import charts, interactive, plot
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, attestations, committee, upcoming
from ..support.drawn_charts import legend_labels, tick_labels


def by_name(chart):
    return {layer.name: layer for layer in chart.layers}


def test_each_duty_is_a_mark_at_its_slot_in_the_row_of_its_validator():
    """Epochs 100 to 102 begin at the slots 3200, 3232 and 3264; 103 to 255 have a sync seat."""
    frame = attestations(1, 3, None, validators=(7, 9))
    duties = upcoming((9, 3300, "proposal"), (7, 3301, "attestation"), (8, 3302, "proposal"))

    chart = charts.duties(frame, duties, committee([7, 7, 8]))

    drawn = by_name(chart)
    assert [
        "Attestation in time (2)",
        "Attestation late (2)",
        "Attestation missed (2)",
        "Next epoch in the sync committee (153)",
        "Next proposal (1)",
    ] == list(drawn)
    slots = {
        name: sorted(
            {
                round((x - np.datetime64(GENESIS.replace(tzinfo=None))) / np.timedelta64(12, "s"))
                for x in one.x
            }
        )
        for name, one in drawn.items()
    }
    assert [3200] == slots["Attestation in time (2)"]
    assert [3232] == slots["Attestation late (2)"]
    assert [3264] == slots["Attestation missed (2)"]
    assert [32 * epoch for epoch in range(103, 256)] == slots[
        "Next epoch in the sync committee (153)"
    ]
    assert [3300] == slots["Next proposal (1)"]
    rows = {name: set(one.y) for name, one in drawn.items()}
    assert {0.0, 1.0} == rows["Attestation late (2)"]
    assert ({0.0}, {1.0}) == (
        rows["Next epoch in the sync committee (153)"],
        rows["Next proposal (1)"],
    )
    time = GENESIS + timedelta(seconds=12 * 3300)
    (text,) = drawn["Next proposal (1)"].texts
    assert f"Next proposal, validator 9<br>slot 3300, Dec 1, {time:%H:%M:%S} UTC" == text


def test_the_last_24_hours_are_drawn():
    """225 epochs of the mainnet are a day; an older one is left out."""
    chart = charts.duties(attestations(*[1] * 230))

    (layer,) = chart.layers
    assert "Attestation in time (225)" == layer.name
    assert layer.x.max() - layer.x.min() == np.timedelta64(224 * 384, "s")


def test_late_is_a_choice():
    """A distance of 3 is late from 2 and from 3 on, not from 4 on."""
    names = [
        [layer.name for layer in charts.duties(attestations(3), late=late).layers]
        for late in (2, 3, 4)
    ]

    late, in_time = ["Attestation late (1)"], ["Attestation in time (1)"]
    assert [late, late, in_time] == names


def test_both_libraries_name_validators_and_kinds():
    """The first validator is at the top; the legend has one entry for each kind."""
    frame = attestations(1, None, validators=(30, 4))

    ax, figure = plot.duties(frame), interactive.duties(frame)

    assert ["4", "30"] == tick_labels(ax.yaxis)
    assert ax.yaxis_inverted()
    assert ["Attestation in time (2)", "Attestation missed (2)"] == legend_labels(ax)
    assert ["4", "30"] == list(figure.layout.yaxis.ticktext)
    assert "2 validators" in plot.alt_text(ax)


def test_more_validators_than_rows_are_an_error():
    with pytest.raises(UsageError, match="11 validators have no room"):
        charts.duties(attestations(1, validators=range(11)))
