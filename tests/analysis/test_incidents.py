"""Incidents: problems that begin at the same time, in one row."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaconframes import analysis
from beaconframes.analysis.problems import COUNT_UNITS, SCHEMA
from beaconframes.calendar import MAINNET
from beaconframes.endpoint.identifiers import parse_list_text
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from .test_income import history
from .test_problems import MISSED, VOTED, stakes, validators

ADVICE = ("BLS credentials", "consolidation possible", "not compounding")


def found(*changes):
    """A frame of `problems`: offline periods of a validator in epoch 100, with some *changes*."""
    rows = []
    for number, change in enumerate(changes):
        row = {"kind": "offline", "validator_index": number, "validators": 1, "first_epoch": 100}
        row |= {"count": 3, "cost_gwei": 1000, "cost_basis": "penalty", "avoidable": True} | change
        first = row["first_epoch"]
        row.setdefault("last_epoch", None if first is None else first + 2)
        row["since"] = None if first is None else MAINNET.time_of("epoch", first)
        row["until"] = None if first is None else MAINNET.time_of("epoch", row["last_epoch"] + 1)
        row["count_unit"] = COUNT_UNITS[row["kind"]]
        rows.append(row | {"table": "income_history", "rows": f"slot == {number}", "detail": ""})
    return pl.DataFrame(rows, schema=SCHEMA)


def spans(result):
    return result.sort("first_epoch").select("first_epoch", "last_epoch", "validators").rows()


def test_validators_of_one_machine_are_one_row():
    """Of 40 that go offline in two epochs, one returns much later; two others are never in it."""
    down = {v: range(20 + v % 2, 40) for v in range(1, 41)} | {40: range(20, 90)}
    down |= {0: range(10, 60), 41: range(30, 50)}
    income = history(
        *(
            (v, e, MISSED if e in epochs else VOTED)
            for v, epochs in down.items()
            for e in range(90)
        ),
        *((50, e, VOTED) for e in range(90)),
    )
    each = analysis.problems(validators(*[{}] * 51), income, stakes(income))

    result = analysis.incidents(each)

    assert [(10, 59, 1), (20, 89, 40), (30, 49, 1)] == spans(result)
    votes = 39 * 20 - 20 + 70
    assert {
        "kind": "offline",
        "validators": 40,
        "since": MAINNET.time_of("epoch", 20),
        "until": each["until"].max(),
        "cost_gwei": votes * (2 * (150 + 280) + 140),
        "avoidable": True,
        "count": votes,
        "count_unit": "votes",
        "group": None,
        "validator_indices": "1-40",
        "first_epoch": 20,
        "last_epoch": 89,
        "problems": 40,
        "cost_unknown": 0,
        "cost_basis": "best reward of the epoch",
    } == result.row(0, named=True)


@pytest.mark.parametrize(
    ("begins", "expected"),
    [
        ([10, 12], [[10, 12]]),
        ([10, 13], [[10], [13]]),
        # No chain of overlaps: each begins while the one before lasts.
        ([10, 12, 14, 16], [[10, 12], [14, 16]]),
        # One that begins shortly before does not split an incident of many.
        ([9, 11, 11, 12, 13], [[9], [11, 11, 12, 13]]),
        ([10, 12, 12, 14], [[10, 12, 12], [14]]),
        ([0, 2, 5], [[0, 2], [5]]),
        # What the largest incident leaves of 11 to 13 is smaller than 10 and 11 together.
        (
            [10, 11, 11, *[12] * 5, *[13] * 5, *[14] * 5],
            [[10, 11, 11], [*[12] * 5, *[13] * 5, *[14] * 5]],
        ),
    ],
)
def test_problems_that_begin_within_two_epochs_are_one_incident(begins, expected):
    """The three epochs in which most begin are one incident, however long each problem lasts."""
    each = found(*({"first_epoch": e, "last_epoch": e + 50 * n} for n, e in enumerate(begins)))

    assert [(e[0], len(e)) for e in expected] == [
        (first, count) for first, _, count in spans(analysis.incidents(each))
    ]


def test_kinds_without_a_common_beginning_are_one_row():
    """Late and single missed votes, exits, balances and advice; other kinds differ by time."""
    together = ["missed votes", "late votes", "exiting", "low balance", *ADVICE]

    for kind in COUNT_UNITS:
        each = found(*({"kind": kind, "first_epoch": 100 * n} for n in range(3)))
        assert (1 if kind in together else 3) == analysis.incidents(each).height, kind


def test_kinds_and_avoidable_problems_are_separate():
    """Usual late votes are one row; those of validators with a fault of their own are another."""
    late = {"kind": "late votes"}
    each = found(
        *[late | {"avoidable": False}] * 3, late, late, late | {"avoidable": None, "cost_gwei": 1}
    )

    result = analysis.incidents(pl.concat([each, found({"validator_index": 9})]))

    assert [
        ("late votes", False, 3),
        ("late votes", True, 2),
        ("offline", True, 1),
        ("late votes", None, 1),
    ] == result.select("kind", "avoidable", "validators").rows()


def test_the_times_of_avoidable_problems_are_their_own():
    """Most problems begin in epochs 12 to 14, but of the avoidable ones most in 10 to 12."""
    begins = [10, 12, 12, 14], [14] * 5
    each = found(
        *({"first_epoch": e, "avoidable": a} for a in (True, False) for e in begins[not a])
    )

    result = analysis.incidents(each).filter("avoidable")

    assert [(10, 3), (14, 1)] == [(first, number) for first, _, number in spans(result)]


def test_unknown_costs_and_times_are_stated():
    """A sum of some costs is the least; no known cost is null; advice never has a cost."""
    nothing = {"cost_gwei": None, "cost_basis": None, "first_epoch": None, "count": None}
    slashed = {"kind": "slashed", "cost_basis": "b"}
    each = found(
        slashed | {"cost_gwei": 7},
        slashed | {"cost_gwei": None, "cost_basis": None, "count": None},
        slashed | {"cost_basis": "a", "cost_gwei": 0},
        *[slashed | nothing] * 2,
        nothing | {"kind": "not compounding", "validators": 4, "validator_index": None, "count": 4},
    )

    result = analysis.incidents(each)

    assert [
        ("slashed", 3, 7, 6, "penalties", 1, "a, or b", 100),
        ("not compounding", 4, None, 4, "validators", 0, "", None),
        ("slashed", 2, None, None, "penalties", 2, "", None),
    ] == result.select(
        *("kind", "validators", "cost_gwei", "count", "count_unit", "cost_unknown", "cost_basis"),
        "first_epoch",
    ).rows()


def test_validators_are_counted_once_and_named_as_loaders_take_them():
    """Several problems of a validator count once; rows that name none count what they state."""
    missed = {"kind": "missed proposal", "count": 1}
    indices = [7, 11, 130, 131, 132, 7]
    each = found(*(missed | {"validator_index": index} for index in indices))
    advice = {"kind": "consolidation possible", "validator_index": None, "validators": 5}
    single = {"kind": "BLS credentials", "validator_index": 3}

    result = analysis.incidents(pl.concat([each, found(advice, advice, single)]))

    by_kind = {row["kind"]: row for row in result.rows(named=True)}
    assert "7, 11, 130-132" == by_kind["missed proposal"]["validator_indices"]
    assert (5, 6, 6) == tuple(
        by_kind["missed proposal"][name] for name in ("validators", "problems", "count")
    )
    assert (10, None) == tuple(
        by_kind["consolidation possible"][name] for name in ("validators", "validator_indices")
    )
    assert "3" == by_kind["BLS credentials"]["validator_indices"]
    assert sorted(set(indices)) == parse_list_text("7, 11, 130-132", "validators")


def test_the_group_that_all_validators_share_is_named():
    """Null for several groups, or if a validator is in none."""
    groups = pl.DataFrame({"validator_index": [0, 1, 2, 3], "group": ["A", "A", "A", "B"]})
    times = [100, 100, 200, 200, 300]
    each = found(*({"first_epoch": first} for first in times), {"validator_index": 0})
    each = each.with_columns(first_epoch=pl.Series([100, 100, 200, 200, 300, 300]))

    result = analysis.incidents(each, groups=groups).sort("first_epoch")

    assert ["A", None, None] == result["group"].to_list()
    # Public lists repeat rows, and pandas makes other integers.
    repeated = pl.concat([groups, groups]).cast({"validator_index": pl.Int32}).to_pandas()
    assert result.equals(analysis.incidents(each, groups=repeated).sort("first_epoch"))


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({"validator_index": [1, 5, 5], "group": ["A", "A", "B"]}, "validator 5 is in several gr"),
        ({"validator_index": ["0xab"], "group": ["A"]}, "validator_index of groups holds String"),
        ({"validator_index": [1], "machine": ["A"]}, "group"),
    ],
)
def test_groups_that_would_count_costs_twice_are_refused(groups, text):
    """A join with two groups of one validator would repeat its problems."""
    with pytest.raises(UsageError, match=text):
        analysis.incidents(found({}), groups=pl.DataFrame(groups))


def test_incidents_are_sorted_by_cost():
    """The most costly first, unknown costs last; then by kind and time."""
    each = found(
        {"first_epoch": 50, "cost_gwei": 5},
        {"first_epoch": 40, "cost_gwei": 5},
        {"first_epoch": 30, "cost_gwei": None},
        {"kind": "missed proposal", "first_epoch": 60, "cost_gwei": 5},
        {"first_epoch": 70, "cost_gwei": 9},
    )

    assert [70, 60, 40, 50, 30] == analysis.incidents(each)["first_epoch"].to_list()


def test_frames_of_pandas_and_without_rows():
    """NumPy has no missing integers: such columns become floats, and names stay whole numbers."""
    each = found({}, {"kind": "not compounding", "validator_index": None, "first_epoch": None})
    each = each.with_columns(cost_gwei=pl.Series([1000, None]))
    loose = to_pandas(each).astype({"validator_index": "float64", "first_epoch": "float64"})

    result = analysis.incidents(loose)

    assert isinstance(result, pd.DataFrame)
    assert ["0", None] == [None if pd.isna(t) else t for t in result["validator_indices"]]
    empty = analysis.incidents(each.clear())
    assert analysis.incidents(each).schema == empty.schema
    assert 0 == empty.height


PROBLEM = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["offline", "slashed", "late votes", "not compounding"]),
        "first_epoch": st.one_of(st.none(), st.integers(0, 12)),
        "count": st.one_of(st.none(), st.integers(1, 9)),
        "cost_gwei": st.one_of(st.none(), st.integers(0, 2**50)),
        "avoidable": st.sampled_from([True, None]),
    }
)


@pytest.mark.more
@settings(deadline=None, derandomize=True, database=None, max_examples=60)
@given(st.lists(PROBLEM, max_size=40))
def test_each_problem_is_in_one_incident_and_the_totals_are_the_same(changes):
    """Any problems: costs, counts and numbers add up, and each incident keeps the rule of time."""
    each = found(*changes)

    result = analysis.incidents(each)

    for name in ("cost_gwei", "count", "validators"):
        assert each[name].sum() == result[name].sum()
    assert each.height == result["problems"].sum()
    without_cost = each.filter(pl.col("cost_gwei").is_null(), ~pl.col("kind").is_in(ADVICE))
    assert without_cost.height == result["cost_unknown"].sum()
    named = [
        parse_list_text(text, "validators") if "," in text or "-" in text else [int(text)]
        for text in result["validator_indices"]
    ]
    assert list(range(each.height)) == sorted(index for indices in named for index in indices)
    for incident, indices in zip(result.rows(named=True), named, strict=True):
        own = each.filter(pl.col("validator_index").is_in(indices))
        assert [incident["kind"]] == own["kind"].unique().to_list()
        assert [incident["avoidable"]] == own["avoidable"].unique().to_list()
        assert incident["first_epoch"] == own["first_epoch"].min()
        assert incident["last_epoch"] == own["last_epoch"].max()
    for (kind, avoidable), own in each.group_by("kind", "avoidable"):
        if kind in ("offline", "slashed"):
            same = (pl.col("kind") == kind) & pl.col("avoidable").eq_missing(pl.lit(avoidable))
            sizes = result.filter(same, pl.col("first_epoch").is_not_null())["problems"]
            begins = own["first_epoch"].drop_nulls().to_list()
            assert choose_largest(begins) == sorted(sizes, reverse=True)
            assert result.filter(same, pl.col("first_epoch").is_null()).height <= 1


def choose_largest(begins):
    """The numbers of problems of the incidents: again and again the 3 epochs with the most."""
    sizes = []
    while begins:
        windows = {first: [e for e in begins if first <= e <= first + 2] for first in begins}
        first = max(sorted(windows), key=lambda epoch: len(windows[epoch]))
        sizes.append(len(windows[first]))
        begins = [e for e in begins if e not in windows[first]]
    return sizes
