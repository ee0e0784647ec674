"""``since`` and ``until`` resolve to ranges of units."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from beaconframes.calendar import MAINNET, Chain
from beaconframes.errors import UsageError
from beaconframes.time_range import Span, is_relative, local_range, resolve_span

# Python refuses to print so many digits.
HUGE = pytest.param(10**5000, id="huge")
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def never():
    raise AssertionError("not needed")


def span(since=None, until=None, *, unit="epoch", chain=MAINNET, latest=490_000, **more):
    found = resolve_span(
        since, until, unit=unit, chain=chain, latest=lambda: latest, now=lambda: NOW, **more
    )
    return found.first, found.last


class TestSpans:
    @pytest.mark.parametrize(
        ("since", "until", "expected"),
        [
            (0, 0, (0, 0)),
            (100, 199, (100, 199)),
            (100, None, (100, 490_000)),
            (-1, None, (490_000, 490_000)),
            (-250, None, (489_751, 490_000)),
            (-250, -1, (489_751, 490_000)),
            (-490_001, 5, (0, 5)),
            (None, None, (0, 490_000)),
            ("latest", None, (490_000, 490_000)),
            ("latest", "latest", (490_000, 490_000)),
            (np.int64(7), np.int32(9), (7, 9)),
        ],
    )
    def test_numbers_are_unit_numbers(self, since, until, expected):
        """An int is the number of a unit; a negative int counts back from the latest."""
        assert expected == span(since, until)

    def test_minus_250_is_250_units(self):
        """since=-250 is a span of length 250."""
        assert 250 == len(Span(*span(-250)))

    @pytest.mark.parametrize(
        ("since", "until", "expected"),
        [
            # Epoch 18924 starts at 14:33:59, the next at 14:40:23.
            ("2021-02-23T14:33:59", "2021-02-23T14:33:59", (18_924, 18_924)),
            ("2021-02-23T14:33:59Z", "2021-02-23T14:40:22Z", (18_924, 18_924)),
            ("2021-02-23 14:33:58.999999", "2021-02-23 14:40:23", (18_924, 18_925)),
            ("2021-02-23T14:34:00", "2021-02-23T14:40:23", (18_925, 18_925)),
            ("2021-02-23T15:33:59+01:00", "2021-02-23T09:33:59-05:00", (18_924, 18_924)),
            (utc("2021-02-23T14:33:59"), utc("2021-02-23T14:40:23"), (18_924, 18_925)),
            (datetime(2021, 2, 23, 14, 33, 59), 18_930, (18_924, 18_930)),  # noqa: DTZ001
            (pd.Timestamp("2021-02-23T14:33:59"), 18_924, (18_924, 18_924)),
            (pd.Timestamp("2021-02-23T14:33:59.000000001Z"), 18_925, (18_925, 18_925)),
            ("2020-12-01T12:00:23", 3, (0, 3)),
        ],
    )
    def test_instants_select_the_units_that_start_between_them(self, since, until, expected):
        """The first unit is the next to start, the last unit the one that started last."""
        assert expected == span(since, until)

    @pytest.mark.parametrize(
        ("unit", "since", "until", "expected"),
        [
            # Mainnet days start at 12:00:23, so each UTC day contains the start of exactly one.
            ("day", "2022-02-09", "2022-02-09", (435, 435)),
            ("day", date(2022, 2, 9), date(2022, 2, 10), (435, 436)),
            ("day", "2025-10-10", "2025-10-10", (1774, 1774)),
            ("day", "2022-02-09T12:00:23", "2022-02-09T12:00:23", (435, 435)),
            ("day", "2022-02-09T12:00:24", "2022-02-10T12:00:23", (436, 436)),
            ("day", "2020-12-01", "2020-12-01", (0, 0)),
            # The slots of a date do not start at midnight: slot 3599 starts at 00:00:11.
            ("slot", "2020-12-02", "2020-12-02", (3599, 10_798)),
            ("epoch", "2020-12-02", "2020-12-02", (113, 337)),
            ("week", "2020-12-08", "2020-12-15", (1, 2)),
            ("period", "2021-10-27", "2021-10-27", (290, 290)),
        ],
    )
    def test_a_date_is_the_whole_utc_day(self, unit, since, until, expected):
        """A date selects all units that start on this UTC day."""
        assert expected == span(since, until, unit=unit, latest=10**7)

    @pytest.mark.parametrize(
        ("month", "first", "last"),
        [
            ("2026-10", "2026-10-01", "2026-10-31"),
            ("2026-09", "2026-09-01", "2026-09-30"),
            ("2024-02", "2024-02-01", "2024-02-29"),
            ("2026-02", "2026-02-01", "2026-02-28"),
            ("2025-12", "2025-12-01", "2025-12-31"),
            ("2020-12", "2020-12-01", "2020-12-31"),
            (np.datetime64("2026-10"), "2026-10-01", "2026-10-31"),
        ],
    )
    @pytest.mark.parametrize("unit", ["slot", "epoch", "day"])
    def test_a_month_is_all_its_utc_days(self, month, first, last, unit):
        """since="2026-10" starts with its first day, and until="2026-10" ends with its last."""
        assert span(first, last, unit=unit) == span(month, month, unit=unit)

    def test_a_month_may_be_one_bound_of_a_range(self):
        """The other bound is a number, a date or an instant."""
        assert span("2026-10-01", "2026-10-06") == span("2026-10", "2026-10-06")
        assert span("2026-09-30T12:00", "2026-10-31") == span("2026-09-30T12:00", "2026-10")

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (np.datetime64("2021-02-23"), "2021-02-23"),
            (np.datetime64("2021-02-23T14", "h"), "2021-02-23T14:00:00"),
            (np.datetime64("2021-02-23T00:00", "m"), "2021-02-23T00:00:00"),
            (np.datetime64("2021-02-23T14:33:59", "s"), "2021-02-23T14:33:59"),
            (np.datetime64("2021-02-23T14:33:59", "ns"), "2021-02-23T14:33:59"),
            (pd.Series(pd.to_datetime(["2021-02-23"])).to_numpy()[0], "2021-02-23T00:00:00"),
        ],
    )
    def test_a_numpy_day_is_a_date_and_finer_units_are_instants(self, value, text):
        """Z2: the type of ``np.datetime64`` says whether it is a whole day or an instant."""
        assert span(text, 19_000) == span(value, 19_000)
        assert span(0, text) == span(0, value)

    def test_until_of_a_date_includes_the_day_and_of_a_timestamp_does_not(self):
        """Z2: two dates select 6 days of 225 epochs; as Timestamps, they select 5 days."""
        dates = span("2026-10-01", date(2026, 10, 6))
        numpy_days = span(np.datetime64("2026-10-01"), np.datetime64("2026-10-06"))
        midnights = span(pd.Timestamp("2026-10-01"), pd.Timestamp("2026-10-06"))
        numpy_midnights = span("2026-10-01", np.datetime64("2026-10-06", "ns"))
        counts = [len(Span(*found)) for found in (dates, numpy_days, midnights, numpy_midnights)]
        assert [6 * 225, 6 * 225, 5 * 225, 5 * 225] == counts

    @pytest.mark.parametrize(
        "value",
        [
            np.datetime64("2026", "Y"),
            np.datetime64("NaT"),
            np.datetime64("20000-01-01"),
            np.datetime64(2**60, "s"),
            np.timedelta64(3, "D"),
        ],
    )
    def test_other_times_of_numpy_are_refused(self, value):
        """Z2: years, NaT, years after 9999 and lengths of time: the message shows a valid date."""
        with pytest.raises(UsageError, match=r'since=.* Use .* a date such as "2026-10-01"'):
            span(value)

    def test_the_units_of_a_date_start_on_this_date(self):
        """The neighbors of the first and the last slot start on other days."""
        first, last = span("2026-10-01", "2026-10-01", unit="slot", latest=10**8)
        times = [MAINNET.time_of("slot", n) for n in (first - 1, first, last, last + 1)]
        assert [date(2026, 9, 30), date(2026, 10, 1), date(2026, 10, 1), date(2026, 10, 2)] == [
            t.date() for t in times
        ]
        assert 7200 == last - first + 1

    @pytest.mark.parametrize("unit", ["slot", "epoch", "day"])
    def test_a_unit_that_starts_at_midnight_is_in_the_new_day(self, unit):
        """A date contains its own first unit, and not that of the next day."""
        chain = Chain("midnight", genesis=utc("2026-01-01T00:00:00"))
        first, last = span("2026-01-02", "2026-01-02", unit=unit, chain=chain)
        assert utc("2026-01-02T00:00:00") == chain.time_of(unit, first)
        assert utc("2026-01-03T00:00:00") == chain.time_of(unit, last + 1)

    @pytest.mark.parametrize(
        ("since", "ago"),
        [
            ("30d", timedelta(days=30)),
            ("12h", timedelta(hours=12)),
            ("45m", timedelta(minutes=45)),
            ("2w", timedelta(weeks=2)),
            (timedelta(days=30), timedelta(days=30)),
            (pd.Timedelta(hours=12), timedelta(hours=12)),
        ],
    )
    def test_an_age_counts_back_from_now(self, since, ago):
        """The range starts with the first epoch that started within this age."""
        first, last = span(since, latest=490_000_000)
        starts = [MAINNET.time_of("epoch", n) for n in (first - 1, first)]
        assert starts[0] < NOW - ago <= starts[1]
        assert 490_000_000 == last

    def test_until_may_be_an_age(self):
        """The range ends with the last epoch that started before this age."""
        first, last = span("2w", "1w")
        assert 1575 == last - first + 1
        assert MAINNET.at("epoch", NOW - timedelta(weeks=1)) == last

    def test_daylight_saving_time_does_not_shift_instants(self):
        """Midnight in Zurich is 22:00 UTC in summer and 23:00 in winter."""
        zurich = ZoneInfo("Europe/Zurich")
        first, last = span(
            datetime(2026, 10, 25, tzinfo=zurich), datetime(2026, 10, 26, tzinfo=zurich)
        )
        assert MAINNET.at("epoch", utc("2026-10-24T22:00:00")) + 1 == first
        assert MAINNET.at("epoch", utc("2026-10-25T23:00:00")) == last

    def test_the_date_of_genesis_starts_with_unit_0(self):
        """This date starts before the chain; its units start with 0."""
        assert (0, 112) == span("2020-12-01", "2020-12-01")

    def test_defaults_are_resolved_like_arguments(self):
        """A missing bound is 0 or the caller's default, in any form that an argument may have."""
        assert (0, 20) == span(default_until=lambda: 20)
        assert (5, 489_901) == span(5, default_until=lambda: -100)
        assert (5, 20) == span(5, 20, default_until=never)

    def test_latest_and_now_are_called_only_if_needed(self):
        """Numbers and dates need neither of them."""
        found = resolve_span(
            "2021-02-23", 20_000, unit="epoch", chain=MAINNET, latest=never, now=never
        )
        assert (18_788, 20_000) == (found.first, found.last)

    def test_latest_is_called_once(self):
        """A head that moves between two calls would make 251 epochs out of 250."""
        heads = iter([1000])
        found = resolve_span(
            -250, None, unit="epoch", chain=MAINNET, latest=lambda: next(heads), now=never
        )
        assert (751, 1000) == (found.first, found.last)

    def test_now_is_called_once(self):
        """Two ages count back from the same time."""
        clock = iter([NOW])
        found = resolve_span(
            "2d", "1d", unit="epoch", chain=MAINNET, latest=never, now=lambda: next(clock)
        )
        assert 225 == len(found)

    def test_errors_of_callbacks_are_raised_unchanged(self):
        """An error of ``latest`` or ``now`` reaches the caller."""

        def broken():
            raise ValueError("no answer")

        with pytest.raises(ValueError, match=r"^no answer$"):
            resolve_span("latest", None, unit="epoch", chain=MAINNET, latest=broken, now=never)
        with pytest.raises(ValueError, match=r"^no answer$"):
            resolve_span("3d", None, unit="epoch", chain=MAINNET, latest=never, now=broken)

    @pytest.mark.parametrize(
        ("since", "until", "message"),
        [
            (10, 5, "since (epoch 10) is after until (epoch 5). Swap them"),
            (
                "2026-10-06",
                "2026-10-02",
                (
                    "since (2026-10-06, epoch 480263) is after until (2026-10-02, epoch 479587). "
                    "Swap them"
                ),
            ),
            (
                "1d",
                "2d",
                "since (1d, epoch 490477) is after until (2d, epoch 490251). Swap them",
            ),
            (-1, -2, "since (-1, epoch 490000) is after until (-2, epoch 489999). Swap them"),
            (
                490_001,
                None,
                (
                    "since (epoch 490001) is after the last available epoch, 490000. "
                    "Use an earlier since"
                ),
            ),
            (
                "2030-01-01",
                "latest",
                (
                    "since (2030-01-01, epoch 746438) is after the last available epoch, 490000. "
                    "Use an earlier since"
                ),
            ),
            # No epoch starts between these two.
            (
                "2021-02-23T14:34:00",
                "2021-02-23T14:40:22",
                (
                    "no epoch starts between since (2021-02-23T14:34:00) and "
                    "until (2021-02-23T14:40:22). Use a longer range"
                ),
            ),
        ],
    )
    def test_an_empty_range_is_refused(self, since, until, message):
        """Z4: reversed, future or too short: the message has both ends and the remedy."""
        with pytest.raises(UsageError) as caught:
            span(since, until)
        assert message == str(caught.value)

    @pytest.mark.parametrize(
        ("since", "until"),
        [
            ("2020-11-30", None),
            ("2020-12-01T12:00:22", None),
            (date(2015, 7, 30), None),
            (0, "2020-11-30"),
            (0, datetime(2020, 12, 1, tzinfo=UTC)),
            ("99999d", None),
            ("999w", None),
            (timedelta(days=365 * 9), None),
            (-490_002, None),
        ],
    )
    def test_a_time_before_genesis_is_refused(self, since, until):
        """The message names the argument and the chain."""
        with pytest.raises(UsageError, match=r"=.* is before the genesis of the chain 'mainnet'"):
            span(since, until)

    @pytest.mark.parametrize(
        "value",
        [
            True,
            False,
            1.5,
            7.0,
            float("nan"),
            np.float64(3),
            np.bool_(True),
            np.array([1, 2]),
            "yesterday",
            "",
            " ",
            "now",
            "Latest",
            "435",
            "-250",
            "20261001",
            "2026-13",
            "2026-00",
            "2026-1",
            "2026/10",
            "2026",
            "2026-W40",
            "2026-W40-1",
            "2026-13-01",
            "2026-02-30",
            " 2026-10-01",
            "2026-10-01\n",
            "2026-10-01T25:00",
            "2026-10-01T",
            "\u0662\u0660\u0662\u0666-\u0661\u0660-\u0660\u0661",  # Arabic digits
            "30",
            "30D",
            "30 d",
            "-30d",
            "1.5d",
            "d",
            "9999999999d",
            pytest.param("x" * 10**6, id="a million letters"),
            timedelta(days=-1),
            pd.NaT,
            pd.Timedelta("NaT"),
            [1, 2],
            (1, 2),
            b"2026-10-01",
            object(),
        ],
    )
    @pytest.mark.parametrize("end", ["since", "until"])
    def test_an_invalid_time_is_refused(self, value, end):
        """The message has the shortened value, and the forms that a time may have."""
        with pytest.raises(UsageError, match=rf"^{end}=(.|\n)* is not a valid time") as caught:
            span(**{end: value})
        assert str(caught.value).endswith(
            '. Use an epoch number, a date such as "2026-10-01", a month such as "2026-10", '
            'or an age such as "30d"'
        )
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize(("unit", "example"), [("slot", "a slot"), ("epoch", "an epoch")])
    def test_an_invalid_time_names_the_unit(self, unit, example):
        """The hint names the unit of the table."""
        with pytest.raises(UsageError) as caught:
            span("1y", unit=unit)
        assert str(caught.value) == (
            f"since='1y' is not a valid time. Use {example} number, "
            'a date such as "2026-10-01", a month such as "2026-10", or an age such as "30d"'
        )

    @pytest.mark.parametrize(
        "value",
        [2**64, 10**30, HUGE, datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))],
    )
    def test_numbers_and_instants_out_of_range_are_refused(self, value):
        """They do not wrap around."""
        with pytest.raises(UsageError, match=r"outside the years|after the year"):
            span(value)

    @pytest.mark.parametrize("value", ["999999999w", timedelta.max])
    def test_ages_before_the_year_1_are_refused(self, value):
        """The message names the supported years."""
        with pytest.raises(UsageError, match=r"outside the years 1 to 9999"):
            span(value)

    @pytest.mark.parametrize("ends", [(5, 4), (-1, 3)])
    def test_an_empty_span_is_refused(self, ends):
        """A span has at least one unit, and starts at 0 or later."""
        with pytest.raises(UsageError, match="is not valid"):
            Span(*ends)


def test_the_ends_of_the_calendar_are_refused():
    for bounds, tz in (
        ({"until": "9999-12-31"}, "America/New_York"),
        ({"since": "0001-01-01"}, "Asia/Tokyo"),
    ):
        with pytest.raises(UsageError, match="is outside the years 1 to 9999"):
            local_range(**bounds, tz=tz)


def test_a_week_of_numpy_is_refused():
    """Its text is its first day, so that the end of a range would be six days too early."""
    with pytest.raises(UsageError, match=r"until=.*2026-10-01"):
        span(0, np.datetime64("2026-10-07", "W"))


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        *((bound, True) for bound in (None, -1, np.int64(-5), "latest", "finalized", "30d", "45m")),
        (timedelta(days=3), True),
        *((bound, False) for bound in (0, 5, np.int64(5), "2026-10", "2026-10-01")),
        *((bound, False) for bound in ("2026-10-01T12:00:00Z", datetime(2026, 10, 1, tzinfo=UTC))),
    ],
)
def test_relative_bounds_depend_on_the_head_or_the_present(bound, expected):
    """An export from such a bound cannot be extended: it means another unit later."""
    assert expected is is_relative(bound)


@pytest.mark.parametrize(
    ("tz", "since", "until", "expected"),
    [
        ("Europe/Berlin", "2026-10-01", "2026-10-01", ("2026-09-30T22:00", "2026-10-01T22:00")),
        ("Europe/Berlin", "2026-10", "2026-10", ("2026-09-30T22:00", "2026-10-31T23:00")),
        ("America/New_York", date(2026, 10, 1), np.datetime64("2026-10-01"),
         ("2026-10-01T04:00", "2026-10-02T04:00")),
        # Clocks are set back at midnight, so that 23:00 to 24:00 is there twice.
        ("Asia/Beirut", "2026-10-24", "2026-10-24", ("2026-10-23T21:00", "2026-10-24T22:00")),
    ],
)  # fmt: skip
def test_dates_of_a_local_range_are_days_of_the_time_zone(tz, since, until, expected):
    """The day begins at its midnight, and ends where the next one begins."""
    start, end = (datetime.fromisoformat(f"{text}+00:00") for text in expected)

    bounds = local_range(since, until, tz=tz)

    assert {"since": start, "until": end - timedelta(microseconds=1)} == bounds


def test_other_bounds_of_a_local_range_stay():
    """Numbers, ages and instants have no day; days of UTC are those of loaders."""
    instant = datetime(2026, 10, 1, 12, tzinfo=UTC)
    for bound in (0, -5, "30d", "finalized", "latest", instant, "2026-10-01T12:00"):
        assert {"since": bound} == local_range(bound, tz="Europe/Berlin")
    assert {"until": "2026-10-01"} == local_range(until="2026-10-01", tz="UTC")
    with pytest.raises(UsageError, match="tz='Berlin' is not a time zone"):
        local_range("2026-10-01", tz="Berlin")
