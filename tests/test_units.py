"""Amounts are converted without losing a digit, or refused with the reason."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas
from beaconframes.units import to_eth, to_gwei, to_tokens, to_wei

WEI = pl.Decimal(28, 0)
ETH = pl.Decimal(38, 18)
MOST = 10**28 - 1
ODD = 2**53 + 1


def D(text):  # noqa: N802
    return Decimal(text)


def column(name, values, dtype):
    # polars accepts integers below 2**63 or above in a list, not both.
    if isinstance(dtype, pl.Decimal):
        values = [None if value is None else Decimal(value) for value in values]
    return pl.DataFrame({name: pl.Series(values, dtype=dtype)})


class TestExact:
    @pytest.mark.parametrize(
        ("wei", "ether"),
        [
            (0, "0"),
            (1, "0.000000000000000001"),
            (-1, "-0.000000000000000001"),
            (ODD, "0.009007199254740993"),
            (32 * 10**18 + 1, "32.000000000000000001"),
            (15 * 10**17, "1.5"),
            (-(2**64) - 1, "-18.446744073709551617"),
            (MOST, "9999999999.999999999999999999"),
            (-MOST, "-9999999999.999999999999999999"),
        ],
    )
    def test_wei_and_ether_are_the_same_digits(self, wei, ether):
        """A wei amount is its ether amount with the point eighteen places to the left, and back."""
        amounts = column("fee_wei", [wei, None], WEI)
        inether = column("fee_eth", [D(ether), None], ETH)
        assert_frame_equal(inether, to_eth(amounts, exact=True))
        assert_frame_equal(amounts, to_wei(inether))

    @pytest.mark.parametrize(
        ("gwei", "wei", "ether"),
        [
            (0, "0", "0"),
            (1, "1000000000", "0.000000001"),
            (-7, "-7000000000", "-0.000000007"),
            (ODD, "9007199254740993000000000", "9007199.254740993"),
            (2**63 - 1, "9223372036854775807000000000", "9223372036.854775807"),
            (-(2**63), "-9223372036854775808000000000", "-9223372036.854775808"),
        ],
    )
    def test_gwei_goes_to_wei_and_ether_and_back(self, gwei, wei, ether):
        """A gwei amount survives every way round."""
        amounts = column("balance_gwei", [gwei, None], pl.Int64)
        inwei = column("balance_wei", [D(wei), None], WEI)
        inether = column("balance_eth", [D(ether), None], ETH)
        assert_frame_equal(inwei, to_wei(amounts))
        assert_frame_equal(inether, to_eth(amounts, exact=True))
        assert_frame_equal(inether, to_eth(inwei, exact=True))
        assert_frame_equal(amounts, to_gwei(inwei))
        assert_frame_equal(amounts, to_gwei(inether))

    @pytest.mark.more
    @settings(deadline=None, max_examples=50)
    @given(st.lists(st.none() | st.integers(-MOST, MOST)))
    def test_wei_through_ether_is_identical(self, values):
        """Any wei amounts come back from exact ether as they were, through polars and pandas."""
        amounts = column("fee_wei", values, WEI)
        assert_frame_equal(amounts, to_wei(to_eth(amounts, exact=True)))
        there = to_wei(to_eth(to_pandas(amounts), exact=True))
        assert values == [None if pd.isna(v) else int(v) for v in there["fee_wei"]]

    @settings(deadline=None, max_examples=50)
    @given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
    def test_gwei_through_wei_and_ether_is_identical(self, values):
        """Any gwei amounts come back from wei, and from there over exact ether, as they were."""
        amounts = column("balance_gwei", values, pl.Int64)
        assert_frame_equal(amounts, to_gwei(to_wei(amounts)))
        assert_frame_equal(amounts, to_gwei(to_eth(to_wei(amounts), exact=True)))

    @pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt64, pl.Int128, pl.Decimal(38, 0), WEI])
    def test_amounts_of_any_integer_type_are_accepted(self, dtype):
        """Wider and narrower types are converted to the unit's own."""
        amounts = column("x_wei", [2_000_000_000], dtype)
        assert_frame_equal(column("x_wei", [2_000_000_000], WEI), to_wei(amounts))
        assert_frame_equal(column("x_gwei", [2], pl.Int64), to_gwei(amounts))
        assert_frame_equal(column("x_eth", [D("2e-9")], ETH), to_eth(amounts, exact=True))

    def test_decimals_with_places_are_exact(self):
        """1.5 gwei is 1,500,000,000 wei, and 12.30 ether with two places is 12.3 ether."""
        gwei = column("x_gwei", [D("1.5"), D("-2.25")], pl.Decimal(20, 2))
        assert_frame_equal(column("x_wei", [1_500_000_000, -2_250_000_000], WEI), to_wei(gwei))
        ether = column("x_eth", [D("12.30")], pl.Decimal(10, 2))
        assert_frame_equal(column("x_eth", [D("12.3")], ETH), to_eth(ether, exact=True))
        assert_frame_equal(column("x_gwei", [12_300_000_000], pl.Int64), to_gwei(ether))


class TestFloats:
    def test_ether_is_a_float_for_plots(self):
        """Without exact=True the amounts are Float64, and whole ether are whole."""
        frame = pl.DataFrame(
            {
                "a_gwei": pl.Series([32 * 10**9, -1, None]),
                "b_wei": pl.Series([32 * 10**18, 1, None], dtype=WEI),
                "c_eth": pl.Series([D("32"), D("0.1"), None], dtype=ETH),
            }
        )
        expected = pl.DataFrame(
            {"a_eth": [32.0, -1e-9, None], "b_eth": [32.0, 1e-18, None], "c_eth": [32.0, 0.1, None]}
        )
        assert_frame_equal(expected, to_eth(frame), check_exact=True)

    @settings(deadline=None, max_examples=50)
    @given(st.lists(st.integers(-MOST, MOST), min_size=1))
    def test_floats_are_accurate_to_almost_the_last_bit(self, values):
        """The relative error stays below 3e-16."""
        floats = to_eth(column("x_wei", values, WEI)).to_series().to_list()
        for wei, ether in zip(values, floats, strict=True):
            true = Fraction(wei, 10**18)
            assert abs(Fraction(ether) - true) <= abs(true) * Fraction(3, 10**16)

    def test_a_mean_in_gwei_becomes_ether(self):
        """Means are floats already, and may stay floats."""
        frame = column("x_gwei", [1.5e9], pl.Float64)
        assert_frame_equal(column("x_eth", [1.5], pl.Float64), to_eth(frame))

    @pytest.mark.parametrize(
        ("name", "convert"),
        [
            ("x_eth", to_wei),
            ("x_eth", to_gwei),
            ("x_eth", lambda frame: to_eth(frame, exact=True)),
            ("x_gwei", to_wei),
            ("x_gwei", to_gwei),
            ("x_wei", to_gwei),
        ],
    )
    @pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame])
    def test_floats_are_refused_as_exact(self, name, convert, make):
        """A float column cannot become exact, and the message says what can."""
        with pytest.raises(UsageError, match=rf"^{name} is Float64.*exact=True"):
            convert(make({name: [1.5]}))


class TestFrames:
    def test_columns_keep_their_position(self):
        """Only amounts change, each in its position."""
        time = datetime(2026, 10, 1, tzinfo=UTC)
        frame = pl.DataFrame(
            {
                "balance_gwei": [32_000_000_001],
                "time": [time],
                "fee_wei": pl.Series([7], dtype=WEI),
                "proposals_missed": [1],
                "gwei": [5],
                "_wei": [6],
                "weight_eth_day": ["text"],
            }
        )
        expected = {
            "balance_eth": D("32.000000001"),
            "time": time,
            "fee_eth": D("0.000000000000000007"),
            "proposals_missed": 1,
            "gwei": 5,
            "_wei": 6,
            "weight_eth_day": "text",
        }
        converted = to_eth(frame, exact=True)
        assert list(expected) == converted.columns
        assert expected == converted.row(0, named=True)
        assert expected == to_eth(frame.lazy(), exact=True).collect().row(0, named=True)
        assert {**expected, "time": time} == to_eth(to_pandas(frame), exact=True).iloc[0].to_dict()

    @pytest.mark.parametrize(
        ("convert", "name", "dtype"),
        [
            (to_wei, "x_wei", WEI),
            (to_gwei, "x_gwei", pl.Int64()),
            (to_eth, "x_eth", pl.Float64()),
            (lambda frame: to_eth(frame, exact=True), "x_eth", ETH),
        ],
    )
    @pytest.mark.parametrize("own", [("x_gwei", pl.Int64), ("x_wei", WEI), ("x_eth", ETH)])
    @pytest.mark.parametrize("values", [[], [None, None]])
    def test_empty_and_null_columns_have_the_type(self, convert, name, dtype, own, values):
        """Zero rows and all-null columns get the same type as others."""
        frame = column(own[0], values, own[1])
        expected = column(name, values, dtype)
        assert_frame_equal(expected, convert(frame))
        assert_frame_equal(expected, convert(frame.lazy()).collect())
        assert_frame_equal(expected, convert(column(own[0], values, pl.Null)))
        back = convert(to_pandas(frame))
        assert_frame_equal(expected, pl.from_pandas(back))

    def test_a_lazy_frame_stays_lazy(self):
        """Nothing is read before it is collected, and the schema is known beforehand."""

        def touched(batch):
            raise AssertionError("read too early")

        source = pl.LazyFrame({"x_gwei": [1]}).select(
            pl.col("x_gwei").map_batches(touched, return_dtype=pl.Int64)
        )
        for convert, schema in (
            (to_eth, {"x_eth": pl.Float64()}),
            (to_wei, {"x_wei": WEI}),
            (to_gwei, {"x_gwei": pl.Int64()}),
        ):
            lazy = convert(source)
            assert isinstance(lazy, pl.LazyFrame)
            assert schema == dict(lazy.collect_schema())

    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    def test_a_lazy_frame_gives_the_same(self, engine):
        """Collected, filtered and grouped, lazy amounts are the eager ones."""
        frame = pl.DataFrame(
            {
                "x_wei": pl.Series([10**27 + 10**9 * n for n in range(1000)], dtype=WEI),
                "n": range(1000),
            }
        )
        for convert in (to_eth, to_gwei, to_wei, lambda f: to_eth(f, exact=True)):
            lazy = convert(frame.lazy()).filter(pl.col("n") % 7 == 3).sort("n")
            eager = convert(frame).filter(pl.col("n") % 7 == 3).sort("n")
            assert_frame_equal(eager, lazy.collect(engine=engine), check_exact=True)

    def test_a_frame_with_nothing_to_convert_is_an_error(self):
        """M6: a count, or a balance as text, is not converted silently."""
        for frame in (
            pl.DataFrame(),
            pl.DataFrame({"count": [1]}),
            pl.DataFrame({"count": [1]}).to_pandas(),
            pl.LazyFrame(schema={"a": pl.Int8}),
        ):
            for convert in (to_eth, to_gwei, to_wei):
                with pytest.raises(UsageError, match="nothing to convert"):
                    convert(frame)
        with pytest.raises(UsageError, match="to_tokens"):
            to_eth(pl.DataFrame({"balance": ["1.5"], "decimals": [1]}))

    def test_the_input_frame_is_not_changed(self):
        """The caller's frame keeps its columns."""
        mine = pd.DataFrame({"x_gwei": [1, 2]}, index=[5, 9])
        to_eth(mine)
        assert [1, 2] == mine["x_gwei"].to_list()
        assert ["x_gwei"] == list(mine.columns)

    @pytest.mark.parametrize(
        ("frame", "convert", "named"),
        [
            ({"x_gwei": [1], "x_wei": [2]}, to_eth, "x_gwei, x_wei would all become x_eth"),
            ({"x_wei": [1], "a": [1], "x_eth": [2]}, to_gwei, "x_wei, x_eth .* x_gwei"),
            ({"x_wei": [1], "x_gwei": [1], "x_eth": [2]}, to_wei, "x_wei, x_gwei, x_eth .* x_wei"),
        ],
    )
    @pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame])
    def test_two_columns_cannot_become_one(self, make, frame, convert, named):
        """Columns that would get the same name are refused."""
        with pytest.raises(UsageError, match=named):
            convert(make(frame))

    @pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame])
    @pytest.mark.parametrize("values", [["1"], [True], [datetime(2026, 1, 1, tzinfo=UTC)]])
    def test_non_numeric_amounts_are_refused(self, make, values):
        """Text, booleans and times under an amount's name are refused."""
        for convert in (to_eth, to_wei):
            with pytest.raises(UsageError, match=r"x_wei .*not a type of amounts"):
                convert(make({"x_wei": values}))

    @pytest.mark.parametrize(
        "frame", [None, [1], {"x_wei": [1]}, "x_wei", pa.table({"x_wei": [1]})]
    )
    def test_other_objects_are_refused(self, frame):
        """Anything but a frame or Series is refused with its type."""
        converts = (to_eth, to_gwei, to_wei, to_pandas)
        for convert in converts[: 3 if isinstance(frame, pa.Table) else 4]:
            with pytest.raises(UsageError, match=f"{type(frame).__name__} is not a frame"):
                convert(frame)

    @pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame])
    def test_floats_are_the_nearest_ones(self, make):
        """0.000183452, not 0.00018345200000000002: files and spreadsheets have short numbers."""
        gwei = [183_452, 1_292_145, 32_000_019_283]
        converted = to_eth(make({"x_gwei": gwei}))
        if isinstance(converted, pl.LazyFrame):
            converted = converted.collect()
        assert [float(Decimal(one) / 10**9) for one in gwei] == list(converted["x_eth"])
        assert [183_452 / 1e9] == list(to_eth(pl.DataFrame({"x_gwei": gwei[:1]}))["x_eth"])

    def test_a_number_has_no_unit(self):
        """A sum of a column is a number: the error has the factors of both units."""
        with pytest.raises(UsageError, match=r"one ether is 10\*\*9 gwei, or 10\*\*18 wei"):
            to_eth(1_948_361)


class TestLosses:
    @pytest.mark.parametrize(
        ("frame", "first", "count"),
        [
            (column("x_wei", [10**9, None, 1_500_000_001, 1], WEI), "1500000001", 2),
            (column("x_wei", [-1], WEI), "-1", 1),
            (column("x_eth", [D("0.0000000001")], ETH), "1.00000000E-10", 1),
        ],
    )
    def test_fractions_of_a_gwei_are_refused(self, frame, first, count):
        """Digits below a gwei are not dropped: the first such value is shown, and the count."""
        with pytest.raises(UsageError, match="not a whole number of gwei") as caught:
            to_gwei(frame)
        assert f"holds {first}, " in str(caught.value)
        assert f"({count} such values)" in str(caught.value)
        assert frame.columns[0] in str(caught.value)

    def test_a_lazy_loss_is_refused_when_collected(self):
        """The same error occurs when a lazy frame is collected."""
        lazy = to_gwei(column("x_wei", [1], WEI).lazy())
        with pytest.raises(UsageError, match="not a whole number of gwei"):
            lazy.collect()

    def test_fractions_of_a_wei_are_refused(self):
        """Nothing is smaller than a wei."""
        with pytest.raises(UsageError, match="not a whole number of wei"):
            to_wei(column("x_gwei", [D("0.0000000001")], pl.Decimal(38, 10)))

    @pytest.mark.parametrize(
        ("frame", "convert"),
        [
            (column("x_wei", [10**28], pl.Decimal(38, 0)), to_wei),
            (column("x_wei", [2**127 - 1], pl.Int128), to_wei),
            (column("x_wei", [2**63 * 10**9], pl.Decimal(38, 0)), to_gwei),
            (column("x_eth", [D(10**10)], ETH), to_wei),
            (column("x_eth", [10**10], pl.Int64), to_wei),
            (column("x_gwei", [10**30], pl.Decimal(38, 0)), lambda f: to_eth(f, exact=True)),
            (column("x_eth", [10**20], pl.Int128), lambda f: to_eth(f, exact=True)),
        ],
    )
    def test_amounts_too_large_are_refused(self, frame, convert):
        """An overflow of the unit's type is our own error."""
        with pytest.raises(UsageError, match=rf"^{frame.columns[0]} holds amounts too large"):
            convert(frame)
        with pytest.raises(UsageError, match=r"holds amounts too large"):
            convert(frame.lazy()).collect()


class TestSeries:
    def test_a_series_is_converted_by_its_name(self):
        """A Series in, a Series out, with the new name."""
        gwei = pl.Series("x_gwei", [1, None])
        assert_series_equal(pl.Series("x_eth", [1e-9, None]), to_eth(gwei))
        assert_series_equal(pl.Series("x_wei", [10**9, None], dtype=WEI), to_wei(gwei))
        there = to_wei(pd.Series([1, 2], name="x_gwei", index=["a", "b"]))
        assert ("x_wei", {"a": D(10**9), "b": D(2 * 10**9)}) == (there.name, there.to_dict())

    @pytest.mark.parametrize("series", [pl.Series([1]), pl.Series("x", [1]), pd.Series([1])])
    def test_a_series_without_a_unit_is_refused(self, series):
        """Without a unit in the name, the conversion is undefined."""
        with pytest.raises(UsageError, match="does not end in _wei, _gwei or _eth"):
            to_eth(series)

    def test_a_series_goes_to_pandas(self):
        """A polars Series becomes an Arrow-backed pandas Series of the same name."""
        there = to_pandas(pl.Series("x_wei", [MOST, None], dtype=WEI))
        assert ("x_wei", MOST, "decimal128(28, 0)[pyarrow]") == (
            there.name,
            int(there[0]),
            str(there.dtype),
        )


class TestPandas:
    WAYS = (
        pytest.param(pd.Series([D(MOST), None], dtype=object), MOST, id="objects"),
        pytest.param(pd.Series([MOST, None], dtype=object), MOST, id="big ints"),
        pytest.param(pd.Series([D(MOST), float("nan")], dtype=object), MOST, id="objects, NaN"),
        pytest.param(pd.Series([D(MOST), pd.NA], dtype=object), MOST, id="objects, NA"),
        pytest.param(
            pd.Series([D(MOST), None], dtype=pd.ArrowDtype(pa.decimal128(28, 0))), MOST, id="Arrow"
        ),
        pytest.param(
            pd.Series([D(MOST), None], dtype=pd.ArrowDtype(pa.decimal256(60, 0))), MOST, id="wide"
        ),
        pytest.param(pd.Series([ODD, None], dtype="int64[pyarrow]"), ODD, id="Arrow int"),
        pytest.param(pd.Series([ODD, None], dtype="Int64"), ODD, id="nullable"),
    )

    def test_wide_integers_of_pandas_move_to_arrow(self):
        """As objects, they are what pandas has for wei."""
        frame = pd.DataFrame({"x_wei": pd.Series([2**70, None], dtype=object), "n": [1, 2]})
        there = to_pandas(frame, dtype_backend="pyarrow")
        assert (2**70, True) == (int(there["x_wei"][0]), pd.isna(there["x_wei"][1]))
        for wrong in (pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame({"x": [1, "a"]})):
            with pytest.raises(UsageError, match="the frame cannot be read"):
                to_pandas(wrong, dtype_backend="pyarrow")

    @pytest.mark.parametrize(("values", "wei"), WAYS)
    def test_pandas_amounts_of_any_type_are_exact(self, values, wei):
        """Objects, Arrow decimals and integers with nulls all keep every digit."""
        frame = pd.DataFrame({"x_wei": values.to_numpy(dtype=object), "n": [1, 2]}, index=[7, 3])
        frame["x_wei"] = values.set_axis([7, 3])
        there = to_eth(frame, exact=True)
        assert ["x_eth", "n"] == list(there.columns)
        assert [7, 3] == list(there.index)
        assert Fraction(wei, 10**18) == Fraction(there["x_eth"].iloc[0])
        assert pd.isna(there["x_eth"].iloc[1])
        assert wei == int(to_wei(there)["x_wei"].iloc[0])

    def test_plain_integers_are_exact(self):
        """Plain int64 gwei, the pandas default, become exact wei."""
        there = to_wei(pd.DataFrame({"x_gwei": [ODD, -1]}))
        assert [ODD * 10**9, -(10**9)] == [int(v) for v in there["x_wei"]]
        assert "decimal128(28, 0)[pyarrow]" == str(there["x_wei"].dtype)

    @pytest.mark.parametrize("dtype", [object, "float64", "Int64"])
    @pytest.mark.parametrize("rows", [0, 2])
    def test_all_null_columns_of_pandas_are_converted(self, dtype, rows):
        """An all-null column is converted whatever type pandas gave it."""
        there = to_wei(pd.DataFrame({"x_gwei": pd.Series([None] * rows, dtype=dtype)}))
        assert "decimal128(28, 0)[pyarrow]" == str(there["x_wei"].dtype)
        assert [True] * rows == there["x_wei"].isna().to_list()

    @pytest.mark.parametrize(
        "values", [[1.5], ["1"], [D("1e-19")], [D("Infinity")], [10**39], [object()], [True, D(1)]]
    )
    def test_objects_that_are_not_amounts_are_refused(self, values):
        """Floats, text, and more than 38 digits or 18 places are refused with the column."""
        with pytest.raises(UsageError, match="x_wei holds values that are not amounts"):
            to_eth(pd.DataFrame({"x_wei": pd.Series(values, dtype=object)}), exact=True)

    def test_column_names_that_are_not_text_are_ignored(self):
        """Numbers and tuples as column names have no unit."""
        frame = pd.DataFrame({0: [1], ("a", "x_wei"): [2], "x_gwei": [3]})
        assert [0, ("a", "x_wei"), "x_wei"] == list(to_wei(frame).columns)

    def test_duplicate_names_are_refused(self):
        """Pandas allows a name twice, a conversion does not."""
        frame = pd.DataFrame([[1, 2]], columns=["x_wei", "x_wei"])
        with pytest.raises(UsageError, match="x_wei, x_wei would all become x_eth"):
            to_eth(frame)

    def test_to_pandas_loses_nothing(self):
        """Nullable integers, wei and text arrive as Arrow types, and times as those of pandas."""
        frame = pl.DataFrame(
            {
                "n": pl.Series([ODD, None]),
                "x_wei": pl.Series([MOST, None], dtype=WEI),
                "sum_wei": pl.Series([10**30, None], dtype=pl.Int128),
                "time": pl.Series(
                    [datetime(2026, 10, 1, tzinfo=UTC), None], dtype=pl.Datetime("us", "UTC")
                ),
                "s": ["a", None],
                "f": [0.1, None],
            }
        )
        expected = {
            "n": "int64[pyarrow]",
            "x_wei": "decimal128(28, 0)[pyarrow]",
            "sum_wei": "decimal128(38, 0)[pyarrow]",
            "time": "datetime64[us, UTC]",
            "s": "large_string[pyarrow]",
            "f": "double[pyarrow]",
        }
        for given_ in (frame, frame.lazy()):
            there = to_pandas(given_)
            assert expected == {name: str(dtype) for name, dtype in there.dtypes.items()}
            assert [ODD, MOST, 10**30] == [int(v) for v in there.iloc[0, :3]]
            assert all(pd.isna(v) for v in there.iloc[1])

    def test_pandas_frames_are_returned_unchanged(self):
        """What is pandas already is not touched."""
        frame, series = pd.DataFrame({"a": [1]}), pd.Series([1], name="a")
        assert frame is to_pandas(frame)
        assert series is to_pandas(series)

    def test_frames_of_other_engines_keep_every_digit(self):
        """Wei of DuckDB and Arrow stay decimals, sums of gwei whole, and times are in UTC."""
        time = datetime(2026, 10, 1, 2, tzinfo=ZoneInfo("Europe/Berlin"))
        rows = pl.DataFrame(
            {"n": [1, 2], "time": [time, time], "x_gwei": [2**60 + 1, 1], "x_wei": [MOST, None]},
            schema_overrides={"x_wei": WEI},
        )
        connection = duckdb.connect()
        table = connection.from_arrow(rows.to_arrow())
        sums = table.aggregate("sum(x_gwei) AS x_gwei, sum(x_wei) AS x_wei")

        for frame in (table, rows.to_arrow()):
            there = to_pandas(frame)
            assert_frame_equal(rows.cast({"time": pl.Datetime("us", "UTC")}), pl.from_pandas(there))
            assert "datetime64[us, UTC]" == str(there["time"].dtype)
        assert [2**60 + 2, MOST] == to_pandas(sums).iloc[0].tolist()

    def test_zero_rows_keep_their_types(self):
        """An empty frame has its Arrow types too."""
        there = to_pandas(pl.DataFrame(schema={"x_wei": WEI, "n": pl.Int64}))
        assert {"x_wei": "decimal128(28, 0)[pyarrow]", "n": "int64[pyarrow]"} == {
            name: str(dtype) for name, dtype in there.dtypes.items()
        }

    def test_parquet_keeps_every_digit(self, tmp_path):
        """Wei written by pandas and read by polars are the same wei."""
        frame = column("x_wei", [MOST, -MOST, ODD, None], WEI)
        to_pandas(frame).to_parquet(tmp_path / "x.parquet")
        assert_frame_equal(frame, pl.read_parquet(tmp_path / "x.parquet"))


class TestTokens:
    """M6: balances of tokens, from exact text to exact numbers."""

    FRAME = pl.DataFrame(
        {
            "token": [None, "0xa", "0xb"],
            "balance": [None, "122100", "1234567890123456789012.5840079131296399"],
            "decimals": [None, 0, 16],
        },
        schema={"token": pl.String, "balance": pl.String, "decimals": pl.Int64},
    )
    NUMBERS = (None, D("122100"), D("1234567890123456789012.5840079131296399"))

    @pytest.mark.parametrize(
        "kind", [lambda f: f, pl.DataFrame.lazy, to_pandas, pl.DataFrame.to_pandas]
    )
    def test_every_digit_is_kept(self, kind):
        """38 digits in every kind of frame; ether, which has no balance in tokens, stays null."""
        mine = kind(self.FRAME)
        converted = to_tokens(mine)

        assert type(mine) is type(converted)
        result = converted.collect() if isinstance(converted, pl.LazyFrame) else converted
        numbers = [None if pd.isna(value) else value for value in list(result["balance"])]
        assert list(self.NUMBERS) == numbers
        if isinstance(result, pl.DataFrame):
            assert pl.Decimal(38, 16) == result.schema["balance"]
            assert result.drop("balance").equals(self.FRAME.drop("balance"))

    def test_numbers_that_are_not_exact_are_refused(self):
        """More than 38 digits, more places than declared, no number: the text is named."""
        for text, places in (("9" * 39, 0), ("1" + "0" * 37, 1), ("1.25", 1), ("1e5", 0), ("", 0)):
            frame = pl.DataFrame({"balance": ["1", text], "decimals": [0, places]})
            with pytest.raises(UsageError, match=f"the balance {text[:20]}"):
                to_tokens(frame)

    def test_other_frames_are_refused(self):
        """The message names the missing column, the hint the loaders."""
        with pytest.raises(UsageError, match=r"no column decimals.*load_token_balances"):
            to_tokens(pl.DataFrame({"balance": ["1"]}))
        with pytest.raises(UsageError, match="is not a frame"):
            to_tokens([1])

    def test_empty_frames_have_the_type(self):
        """No rows, no decimal places."""
        assert pl.Decimal(38, 0) == to_tokens(self.FRAME.clear()).schema["balance"]
