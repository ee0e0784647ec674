"""Chains convert units to times."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pytest

from beaconframes.calendar import HOODI, MAINNET, Chain, find_chain, get_chain
from beaconframes.errors import ConfigError, UsageError

# Python refuses to print so many digits.
HUGE = pytest.param(10**5000, id="huge")


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_tests_run_outside_utc():
    """Local time in place of UTC fails a test: the tests run in the time zone of New York."""
    moment = datetime(2026, 10, 1, tzinfo=UTC)
    assert timedelta(hours=-4) == moment.astimezone().utcoffset()


class TestTimes:
    @pytest.mark.parametrize(
        ("chain", "unit", "number", "expected"),
        [
            (MAINNET, "slot", 0, "2020-12-01T12:00:23"),
            (MAINNET, "slot", 1, "2020-12-01T12:00:35"),
            (MAINNET, "epoch", 1, "2020-12-01T12:06:47"),
            (MAINNET, "epoch", 18_924, "2021-02-23T14:33:59"),
            (MAINNET, "day", 435, "2022-02-09T12:00:23"),
            (MAINNET, "day", 1774, "2025-10-10T12:00:23"),
            (MAINNET, "week", 1, "2020-12-08T12:00:23"),
            (MAINNET, "period", 290, "2021-10-27T10:56:23"),
            (HOODI, "slot", 0, "2025-03-17T12:10:00"),
            (HOODI, "day", 1, "2025-03-18T12:10:00"),
        ],
    )
    def test_units_start_at_their_published_times(self, chain, unit, number, expected):
        """The start of a unit is the instant in the public record."""
        assert utc(expected) == chain.time_of(unit, number)

    def test_genesis_is_the_published_unix_second(self):
        """The genesis of each public chain is its published Unix second."""
        published = [1606824023, 1742213400, 1655733600, 1695902400]
        names = ("mainnet", "hoodi", "sepolia", "holesky")
        assert published == [get_chain(name).genesis.timestamp() for name in names]

    def test_the_first_sync_period_starts_with_altair(self):
        """Mainnet's first sync committee is that of epoch 74240, period 290; hoodi's of epoch 0."""
        assert (74_240, 0) == (MAINNET.first_sync_epoch, HOODI.first_sync_epoch)
        first = [get_chain(name).first_sync_epoch for name in ("sepolia", "holesky")]
        assert [50, 0] == first
        assert MAINNET.time_of("period", 290) == MAINNET.time_of("epoch", 74_240)

    def test_a_day_has_225_epochs_and_a_week_1575(self):
        """A day is 225 epochs, a week 1575."""
        assert (225, 1575) == (MAINNET.epochs_per_day, MAINNET.epochs_per_week)

    @pytest.mark.parametrize(
        ("unit", "number", "expected"),
        [
            ("slot", 31, 0),
            ("slot", 32, 1),
            ("slot", 63, 1),
            ("epoch", 7, 7),
            ("day", 435, 97_875),
            ("week", 2, 3150),
            ("period", 290, 74_240),
        ],
    )
    def test_every_unit_has_a_first_epoch(self, unit, number, expected):
        """Day d starts with epoch 225 d, week w with epoch 1575 w, period p with epoch 256 p."""
        assert expected == MAINNET.at("epoch", MAINNET.time_of(unit, number))

    @pytest.mark.parametrize("unit", ["slot", "epoch", "day", "week", "period"])
    def test_an_instant_is_in_the_unit_that_started_last(self, unit):
        """Its first instant is in this unit, the instant before it in the previous unit."""
        start = MAINNET.time_of(unit, 7)
        assert [6, 7, 7] == [
            MAINNET.at(unit, start - timedelta(microseconds=1)),
            MAINNET.at(unit, start),
            MAINNET.at(unit, start + timedelta(microseconds=1)),
        ]

    def test_the_last_slot_of_an_epoch_is_in_this_epoch(self):
        """All twelve seconds of slot 63 are in epoch 1."""
        last = MAINNET.time_of("slot", 63)
        assert [1, 1, 2] == [MAINNET.at("epoch", last + timedelta(seconds=s)) for s in (0, 11, 12)]

    def test_a_naive_instant_is_utc_and_another_zone_is_converted(self):
        """14:33:59 in London in winter is 15:33:59 in Zurich, and the same epoch."""
        naive = datetime(2021, 2, 23, 14, 33, 59)  # noqa: DTZ001
        zurich = datetime(2021, 2, 23, 15, 33, 59, tzinfo=ZoneInfo("Europe/Zurich"))
        assert [18_924, 18_924] == [MAINNET.at("epoch", naive), MAINNET.at("epoch", zurich)]

    def test_an_instant_before_genesis_is_refused(self):
        """The message contains the time of genesis."""
        with pytest.raises(UsageError, match="2020-12-01T12:00:23Z"):
            MAINNET.at("slot", utc("2020-12-01T12:00:22"))

    @pytest.mark.parametrize("number", [-1, True, 1.0, "7", None, 2**64 - 1, HUGE])
    def test_invalid_unit_numbers_are_refused(self, number):
        """Negative, boolean, fractional, text and far-future numbers have no time."""
        with pytest.raises(UsageError, match="epoch"):
            MAINNET.time_of("epoch", number)

    @pytest.mark.parametrize("unit", ["month", "Epoch", "", None, 3])
    def test_an_unknown_unit_is_named(self, unit):
        """The error lists the units that exist."""
        with pytest.raises(UsageError, match="slot, epoch, day, week, period"):
            MAINNET.time_of(unit, 1)

    @pytest.mark.parametrize("moment", [None, 5, "2026-10-01", date(2026, 10, 1), pd.NaT])
    def test_only_a_datetime_has_a_unit(self, moment):
        """Any other value is refused; the message names the argument."""
        with pytest.raises(UsageError, match="moment"):
            MAINNET.at("slot", moment)

    def test_an_instant_before_the_year_1_is_refused(self):
        """The first hours of the year 1 in a time zone east of UTC are before the year 1 in UTC."""
        edge = datetime.min.replace(tzinfo=timezone(timedelta(hours=10)))
        with pytest.raises(UsageError, match=r"outside the years 1 to 9999"):
            MAINNET.at("slot", edge)


class TestExpressions:
    @pytest.mark.parametrize("unit", ["slot", "epoch", "day", "week", "period"])
    @pytest.mark.parametrize("chain", [MAINNET, HOODI])
    def test_the_expression_equals_the_method(self, unit, chain):
        """Times are equal, in UTC microseconds; null stays null."""
        numbers = [0, 1, 435, 1774, 12_345, None]
        frame = pl.DataFrame({"n": pl.Series(numbers, dtype=pl.Int64)})
        times = frame.select(chain.time_expr(unit, pl.col("n"))).to_series()
        assert pl.Datetime("us", "UTC") == times.dtype
        expected = [None if n is None else chain.time_of(unit, n) for n in numbers]
        assert expected == times.to_list()

    @pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt32, pl.UInt64, pl.Int128])
    def test_small_integers_do_not_overflow(self, dtype):
        """An epoch number in 32 bits gets its exact time."""
        numbers = pl.DataFrame({"n": pl.Series([400_000], dtype=dtype)})
        times = numbers.select(MAINNET.time_expr("epoch", pl.col("n"))).to_series()
        assert [utc("2025-10-14T06:40:23")] == times.to_list()

    @pytest.mark.parametrize(
        "chain", [MAINNET, Chain("test", genesis=MAINNET.genesis, slots_per_epoch=8)]
    )
    def test_the_slots_of_an_epoch_are_an_int_or_an_expression(self, chain):
        """The slot before the first one of an epoch is in the epoch before."""
        epochs = [0, 1, 400_000, None]
        frame = pl.DataFrame({"n": pl.Series(epochs, dtype=pl.Int64)}).select(
            first=chain.first_slot_of(pl.col("n")), last=chain.last_slot_of(pl.col("n"))
        )
        for epoch, (first, last) in zip(epochs, frame.rows(), strict=True):
            if epoch is None:
                assert (first, last) == (None, None)
                continue
            assert (first, last) == (chain.first_slot_of(epoch), chain.last_slot_of(epoch))
            times = [chain.time_of("slot", slot) for slot in (first, last, last + 1)]
            assert [epoch, epoch, epoch + 1] == [chain.at("epoch", time) for time in times]
            assert chain.time_of("epoch", epoch) == times[0]

    def test_an_empty_column_has_the_type(self):
        """Without rows the column has UTC times too."""
        frame = pl.DataFrame(schema={"n": pl.Int64}).with_columns(
            time=MAINNET.time_expr("day", pl.col("n"))
        )
        assert {"n": pl.Int64(), "time": pl.Datetime("us", "UTC")} == dict(frame.schema)


class TestChains:
    def test_mainnet_has_the_units_of_the_consensus_specification(self):
        """SECONDS_PER_SLOT, SLOTS_PER_EPOCH and others of its preset `mainnet`."""
        assert (12, 32) == (MAINNET.seconds_per_slot, MAINNET.slots_per_epoch)
        assert (256, 512) == (MAINNET.epochs_per_sync_period, MAINNET.sync_committee_size)

    def test_chains_are_found_by_name(self):
        """Names are not case-sensitive; a chain is returned unchanged."""
        own = Chain("mytest", genesis=utc("2026-01-01T00:00:00"))
        assert [MAINNET, HOODI, HOODI, own] == [
            get_chain(c) for c in ("mainnet", "hoodi", "Hoodi", own)
        ]

    @pytest.mark.parametrize("name", ["goerli", "", None, 1])
    def test_an_unknown_chain_lists_the_known_ones(self, name):
        """The error names the chain, the known ones, a file for all interfaces, and a Chain."""
        parts = r"unknown chain .*mainnet, hoodi.*TOML file.*in Python a Chain\("
        with pytest.raises(ConfigError, match=parts) as caught:
            get_chain(name)
        assert repr(name) in str(caught.value)

    def test_a_chain_is_read_from_a_file(self, tmp_path):
        """The file has the fields of a chain; those that it leaves out are as on mainnet."""
        file = tmp_path / "devnet.toml"
        file.write_text('name = "devnet"\ngenesis = 2026-01-01T00:00:00Z\nseconds_per_slot = 6\n')

        chain = get_chain(str(file))

        assert Chain("devnet", utc("2026-01-01T00:00:00"), seconds_per_slot=6) == chain

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (None, "cannot be read: .*No such file"),
            ("name = devnet", "cannot be read: "),
            ('name = "devnet"', "missing 1 required positional argument: 'genesis'"),
            ('name = "devnet"\nslots = 6', "unexpected keyword argument 'slots'. Its fields are: "),
            ('name = "devnet"\ngenesis = 2026-01-01T00:00:00', "has no time zone"),
            (
                'name = "devnet"\ngenesis = "2026-01-01T00:00:00Z"',
                "which is not a datetime.*2026-01-01T00:00:00Z without quotes",
            ),
        ],
    )
    def test_a_wrong_file_of_a_chain_names_what_is_wrong(self, tmp_path, text, message):
        file = tmp_path / "devnet.toml"
        if text is not None:
            file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            get_chain(str(file))

    def test_a_chain_with_other_slot_and_epoch_lengths(self):
        """Five-second slots, sixteen in an epoch, make 1080 epochs a day."""
        chain = Chain(
            "fast",
            genesis=utc("2026-01-01T00:00:00"),
            seconds_per_slot=5,
            slots_per_epoch=16,
            epochs_per_sync_period=512,
        )
        assert (1080, 7560) == (chain.epochs_per_day, chain.epochs_per_week)
        assert utc("2026-01-02T00:00:00") == chain.time_of("day", 1)
        assert utc("2026-01-01T11:22:40") == chain.time_of("period", 1)

    @pytest.mark.parametrize(("first", "last"), [(0, 1), (10, 20), (1, 1001)])
    def test_two_starts_give_genesis_and_slots_of_an_unknown_chain(self, first, last):
        """Epochs of 192 s are 32 slots of 6 s; epoch 0 starts at genesis."""
        genesis = utc("2026-01-01T00:00:00")
        starts = [(number, genesis + number * timedelta(seconds=192)) for number in (first, last)]

        chain = find_chain("epoch", starts)

        assert (genesis, 6, 32) == (chain.genesis, chain.seconds_per_slot, chain.slots_per_epoch)

    def test_a_notebook_shows_the_lengths_of_a_chain(self):
        """32 slots of 12 s are 384 s; 256 epochs are 98,304 s."""
        table = re.sub(r"<[^>]*>", " ", MAINNET._repr_html_())

        for text in ("12 seconds", "32 slots, 0:06:24 hours", "225 epochs", "1 day, 3:18:24 hours"):
            assert text in table

    def test_genesis_in_another_zone_is_converted_to_utc(self):
        """A genesis in local time does not follow the daylight saving time of its zone."""
        chain = Chain("local", genesis=datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("Europe/Zurich")))
        assert utc("2026-03-29T11:00:00") == chain.time_of("day", 1)
        assert UTC is chain.time_of("day", 1).tzinfo

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"genesis": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001
            ({"genesis": 1606824023}, "is not a datetime"),
            ({"name": ""}, "name"),
            ({"name": None}, "name"),
            ({"seconds_per_slot": 0}, "seconds_per_slot"),
            ({"seconds_per_slot": 12.0}, "seconds_per_slot"),
            ({"slots_per_epoch": -32}, "slots_per_epoch"),
            ({"slots_per_epoch": True}, "slots_per_epoch"),
            ({"epochs_per_sync_period": 0}, "epochs_per_sync_period"),
            ({"sync_committee_size": 0}, "sync_committee_size"),
            ({"first_sync_epoch": -1}, "first_sync_epoch"),
            ({"seconds_per_slot": 10_000}, "longer than a day"),
        ],
    )
    def test_an_invalid_chain_is_refused(self, wrong, message):
        """The constructor raises an error that names the invalid value."""
        facts = {"name": "odd", "genesis": utc("2026-01-01T00:00:00")} | wrong
        with pytest.raises(ConfigError, match=message):
            Chain(**facts)

    def test_a_chain_cannot_be_changed(self):
        """Chains are frozen."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            MAINNET.seconds_per_slot = 6


def test_importing_the_calendar_loads_no_heavy_library():
    """Every start of the package imports it."""
    code = (
        "import sys, json, beaconframes.time_range, beaconframes.config, beaconframes.units;"
        "print(json.dumps([m for m in ('polars', 'pandas', 'numpy', 'narwhals') "
        "if m in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert [] == json.loads(run.stdout)
