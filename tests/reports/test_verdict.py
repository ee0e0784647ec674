"""The verdict of a report: its sentences, and the marks of what is not complete."""

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import polars as pl

from beaconframes.analysis.average_comparison import PARTS
from beaconframes.reports.parts.groups import build_groups, judge_groups
from beaconframes.reports.verdict import list_verdict

ETH = 10**18
COMPARED = {
    "earned_wei": 2 * ETH,
    "average_wei": 4 * ETH,
    "difference_wei": -2 * ETH,
    **dict.fromkeys(PARTS, 0),
    "missed_avoidable_wei": -3 * ETH,
    "sync_luck_wei": ETH,
    "builder_payments_wei": ETH,
    "days_estimated": 0,
    "consensus_only": False,
}


def frames(marks=(), statuses=("active_online", "active_online"), groups=None, **compared):
    summary = {
        "validators": len(statuses),
        "active": len(statuses),
        "since": datetime(2026, 10, 1, tzinfo=UTC),
        "until": datetime(2026, 10, 8, 12, tzinfo=UTC),
        "net_income_wei": Decimal(3 * ETH),
        "consensus_income_gwei": 2 * 10**9,
    }
    row = {
        name: Decimal(value) if name.endswith("_wei") and value is not None else value
        for name, value in (COMPARED | compared).items()
    }
    found = {
        "summary": pl.DataFrame([summary]),
        "comparison": pl.DataFrame([row]),
        "validators": pl.DataFrame(
            {
                "validator_index": range(10, 10 + len(statuses)),
                "status": statuses,
                "lost_gwei": range(len(statuses)),
            }
        ),
        "incomplete": pl.DataFrame(
            marks, dict.fromkeys(("frame", "column", "mark", "without"), pl.String), orient="row"
        ),
    }
    if groups is not None:
        found["validators"] = found["validators"].with_columns(group=pl.lit("A"))
    return found | (groups or {})


def test_earned_average_and_parts():
    """What was earned, beside average validators; parts of 0 are not listed."""
    assert [
        "Earned in this time: 3.00000 ETH, by 2 validators in 7.5 days.",
        "Average validators with the same balances: 4.00000 ETH.",
        (
            "Difference to average: 2.00000 ETH (50.00 %) less, without payments of builders "
            "(2.00000 ETH)."
        ),
        (
            "Parts of the difference: missed, avoidable \u22123.00000; "
            "luck of sync seats +1.00000 ETH."
        ),
        "Active: 2 of 2 validators.",
        "Act first: nothing, no validator is offline now.",
    ] == list_verdict(frames())


def test_estimated_days_and_consensus_income():
    """The nearest day stands for one that the index does not have; fees may be unknown."""
    lines = list_verdict(frames(days_estimated=2, consensus_only=True, difference_wei=ETH))

    assert "the yield index does not have 2 days yet, for which the nearest day counts" in lines[1]
    assert "1.00000 ETH (25.00 %) more, on the consensus layer" in lines[2]


def test_unknown_parts_are_named():
    """They are in the rest; without execution income, fees are in no amount."""
    parts = {"average_missed_wei": None, "unexplained_wei": ETH}
    known = "missed, avoidable \u22123.00000; luck of sync seats +1.00000; unexplained +1.00000 ETH"

    assert (
        f"Parts of the difference: {known}; unknown, and in the rest: average validators missed, "
        "too." == list_verdict(frames(**parts))[3]
    )
    without = {"execution_wei": None, "consensus_only": True, "unexplained_wei": ETH}
    assert f"Parts of the difference: {known}." == list_verdict(frames(**without))[3]


def test_numbers_that_are_not_complete_are_marked():
    """The mark of a number is in its sentence, and no unknown number is 0."""
    marks = [
        ("summary", "net_income_wei", "incomplete", "load_produced_blocks"),
        ("comparison", None, "incomplete", "load_proposals"),
    ]
    lines = list_verdict(frames(marks))
    assert all("(incomplete)" in line for line in lines[:4])

    unknown = frames([("summary", "net_income_wei", "unknown", "load_produced_blocks")])
    unknown["summary"] = unknown["summary"].with_columns(net_income_wei=None)
    assert "2.00000 ETH on the consensus layer, unknown on" in list_verdict(unknown)[0]

    nothing = {**unknown, "summary": unknown["summary"].drop("consensus_income_gwei")}
    del nothing["comparison"]
    lines = list_verdict(nothing)
    assert "Earned in this time: unknown, by 2 validators in 7.5 days." == lines[0]
    assert all(line.endswith(": unknown.") for line in lines[1:4])
    assert "unknown" in list_verdict(frames(average_wei=0))[1]


def test_offline_validators_are_named_by_their_losses():
    """Those that lost most come first; a status of another service says nothing."""
    offline = list_verdict(frames(statuses=("active_offline",) * 7))
    assert "Act first: 7 validators offline now: 16, 15, 14, 13, 12 and 2 more." == offline[-1]
    leaving = list_verdict(frames(statuses=("exiting_offline", "slashing_offline")))
    assert "Act first: 2 validators offline now: 11, 10." == leaving[-1]
    online = list_verdict(frames(statuses=("exiting_online", "slashing_online")))
    assert "Act first: nothing, no validator is offline now." == online[-1]
    assert "Active: 2 of 2 validators." == list_verdict(frames(statuses=("active",) * 2))[-1]


def judge(rows):
    """Return the frames of groups, whose verdict is that of the part that builds them."""
    columns = ["measure", "group", "value", "others", "difference", "differs"]
    measures = pl.DataFrame(rows, columns, orient="row")
    table = pl.DataFrame(
        {
            "group": [row[1] for row in rows for _ in range(2)],
            "effectiveness": 0.98,
            "lost_gwei": [number for row in rows for number in (10, 15)],
        }
    )
    return {"groups": measures, "group_verdict": judge_groups(table, measures)}


def test_worse_groups_come_first():
    """A group that differs by more than chance is named before everything else."""
    groups = judge(
        [
            ("lost_gwei", "bad pair", 5e5, 1.7e5, 3.3e5, True),
            ("lost_gwei", "good pair", 1e5, 4e5, -3e5, True),
            ("votes_missed", "bad pair", 22.0, 2.0, 20.0, True),
            ("votes_missed", "chance", 3.0, 2.0, 1.0, False),
            ("lost_gwei", "mixed", 3e5, 2e5, 1e5, True),
            ("votes_missed", "mixed", 3.0, 2.0, 1.0, False),
            ("votes_missed", "single", 3.0, 2.0, 1.0, None),
            ("effectiveness", "chance", 0.98, 0.99, -0.01, True),
        ]
    )

    lines = list_verdict(frames(groups=groups))

    assert (
        "Group bad pair: 11 times the missed votes, 0.00033 ETH more lost per validator of 32 ETH, "
        "compared with the others; this is more than chance." == lines[0]
    )
    # Of a measure that may be chance, nothing is said.
    assert lines[1].startswith("Group mixed: 0.00010 ETH more lost per validator of 32 ETH")
    assert lines[2].startswith("Earned in this time: ")
    assert not any("Comparison of groups" in line for line in lines)
    marks = [("group_verdict", None, "incomplete", "load_proposals")]
    assert list_verdict(frames(marks, groups=groups))[0].endswith("more than chance (incomplete).")


def test_a_ratio_of_missed_votes_is_stated_from_two_on():
    """Of others that missed no vote there is none, and 1.5 times is no "2 times"."""
    columns = [("none", 4.0, 0.0), ("little", 30.0, 20.0), ("twice", 4.0, 2.0)]
    rows = [
        ("votes_missed", name, own, others, own - others, True) for name, own, others in columns
    ]
    worse = [("lost_gwei", name, 5e5, 1e5, 4e5, True) for name, _, _ in columns]

    lines = list_verdict(frames(groups=judge([*rows, *worse])))

    said = {line.split(":")[0]: line.split(": ")[1].split(",")[0] for line in lines[:3]}
    assert {
        "Group none": "more missed votes",
        "Group little": "more missed votes",
        "Group twice": "2 times the missed votes",
    } == said


def test_the_verdict_on_each_group():
    """Effectiveness and rates do not judge; a single validator cannot be compared."""
    found = judge(
        [
            ("lost_gwei", "bad", 5e5, 1.7e5, 3.3e5, True),
            ("votes_missed", "bad", 2.0, 3.0, -1.0, True),
            ("lost_gwei", "good", 1e5, 4e5, -3e5, True),
            ("votes_missed", "good", 2.0, 3.0, -1.0, False),
            ("lost_gwei", "like", 1e5, 2e5, -1e5, False),
            ("votes_missed", "like", 2.0, 2.0, 0.0, None),
            ("apr_on_effective", "like", 0.02, 0.03, -0.01, True),
            ("lost_gwei", "single", 5e5, 1e5, 4e5, None),
        ]
    )["group_verdict"]

    assert {
        "bad": "worse", "good": "better", "like": "like the others", "single": None,
    } == dict(found.select("group", "verdict").iter_rows())  # fmt: skip
    assert ["bad", "good", "like", "single"] == found["group"].to_list()
    # Half of a gwei is rounded to an even one.
    assert [12] * 4 == found["lost_per_validator_gwei"].to_list()
    assert [4, 4, 6, 2] == found["validators"].to_list()


def test_large_and_old_validators_are_not_worse():
    """A validator of 64 ETH loses twice as much by the same fault, and a new one has few votes."""
    ages = {"old": (450, 32), "new": (150, 32), "large": (450, 64), "exited": (0, 0)}
    table = pl.DataFrame(
        [
            (group, votes, ether * 10**9, votes * n // 150, votes * n * ether)
            for group, (votes, ether) in ages.items()
            for n in range(1, 13)
        ],
        ["group", "votes", "effective_balance_gwei", "votes_missed", "lost_gwei"],
        orient="row",
    )
    table = table.with_columns(validator_index=pl.int_range(pl.len()))

    found = build_groups(SimpleNamespace(groups=True), {"validators": table})

    assert {
        "old": "like the others",
        "new": "like the others",
        "large": "like the others",
        "exited": None,
    } == dict(found["group_verdict"].select("group", "verdict").iter_rows())
    means = found["groups"].filter(pl.col("group") != "exited").group_by("measure")
    assert {("votes_missed", 19.5, 19.5), ("lost_gwei", 93_600.0, 93_600.0)} == {
        *means.agg(low=pl.min("value"), high=pl.max("value")).iter_rows()
    }


def test_few_votes_and_withdrawn_balances_do_not_change_the_verdict():
    """Of two votes, one says nothing; what validators lost before their withdrawal counts."""
    rows = [(n, "AB"[n // 30], 1_000, n % 6 + 20 * (n // 30)) for n in range(60)]
    table = pl.DataFrame(
        [*rows, (60, "A", 2, 2)],
        ["validator_index", "group", "votes", "votes_missed"],
        orient="row",
    )
    table = table.with_columns(
        effective_balance_gwei=pl.when(pl.col("group") == "A").then(32 * 10**9).otherwise(0),
        lost_gwei=10_000 * pl.col("votes_missed"),
    )

    found = build_groups(SimpleNamespace(groups=True), {"validators": table})

    verdicts = found["group_verdict"].select("group", "verdict").rows()
    assert [("A", "better"), ("B", "worse")] == verdicts
    means = found["groups"].filter(group="B").select("measure", "value", "others").rows()
    assert {("votes_missed", 22.5, 2.5), ("lost_gwei", 225_000, 25_000)} == set(means)


def test_groups_that_do_not_differ_are_one_sentence_at_the_end():
    """Of groups whose figures are unknown, nothing is said but that."""
    row = ("lost_gwei", "A", 5e5, 4e5, 1e5, False)
    lines = list_verdict(frames(groups=judge([row])))
    assert "Comparison of groups: none is worse than the others by more than chance." == lines[-1]
    assert lines[0].startswith("Earned in this time: ")

    missing = frames(groups=judge([row]))
    del missing["group_verdict"], missing["groups"]
    unknown = "Comparison of groups: unknown; missed votes and losses are unknown."
    assert unknown == list_verdict(missing)[-1]


def test_groups_that_cannot_be_compared_are_named_with_the_reason():
    """Of seven small groups, the first five are named; the sentence has its mark before them."""
    known = ("lost_gwei", "A", 5e5, 4e5, 1e5, False)
    small = [("lost_gwei", f"small {n}", 5e5, 4e5, 1e5, None) for n in range(7)]

    def describe(rows, marks=()):
        return list_verdict(frames(marks, groups=judge(rows)))[-1]

    none = "Comparison of groups: none is worse than the others by more than chance"
    reason = "too few validators with votes."
    assert f"{none}; unknown of small 0: {reason}" == describe([known, small[0]])
    marks = [("group_verdict", None, "incomplete", "load_proposals")]
    names = ", ".join(f"small {n}" for n in range(5))
    many = f"{none} (incomplete); unknown of {names} and 2 more: {reason}"
    assert many == describe([known, *small], marks)
    assert f"Comparison of groups: unknown; {reason}" == describe(small, marks)
    single = "Comparison of groups: unknown; there is only one group."
    assert single == describe(small[:1])
