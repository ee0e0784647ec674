"""Step 12, 8: analysis and ledger on the command line, of files and of loaded rows."""

from __future__ import annotations

import inspect
import json
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import analysis
from beaconframes.calendar import MAINNET
from beaconframes.cli import analyse, analysis_results, commands
from beaconframes.cli.analyses import get_function, list_analyses
from beaconframes.cli.analysis_frames import build_call, build_empty, find_epochs

from ..analysis import test_ledger as ledger
from ..analysis.test_incidents import found
from ..analysis.test_income import history, varied
from ..analysis.test_problems import MISSED, VOTED, stakes, validators
from ..support.cases import every

INCOME = varied(range(3), range(26_200, 26_350, 30))


@pytest.fixture
def run():
    """Run `analyse` in this process."""

    def invoke(*arguments, command="analyse"):
        return CliRunner().invoke(commands, [command, *map(str, arguments)])

    return invoke


@pytest.fixture
def files(tmp_path):
    """Write frames into files of these names; return their paths."""

    def write(**frames):
        for name, (frame, suffix) in frames.items():
            bf.export(frame, tmp_path / f"{name}.{suffix}")
        return [tmp_path / f"{name}.{suffix}" for name, (_, suffix) in frames.items()]

    return write


def test_every_function_has_a_command_with_its_arguments():
    """Each argument is a frame, an option, or the chain of the explorer."""
    functions = {name for name in analysis.__all__ if callable(getattr(analysis, name))}
    # They take rows of another analysis.
    functions -= {"compare_groups", "compare_with_average", "compare_with_network"}
    functions -= {"daily_rates", "ledger_totals", "problem_totals", "reconciliation_totals"}
    functions -= {"tax_rows", "upcoming_totals"}
    functions -= {"yearly_totals"}
    assert functions == {name.replace("-", "_") for name in list_analyses()}
    for name, described in list_analyses().items():
        command = analyse.build_command(name)
        options = {option.name for option in command.params}
        parameters = [*inspect.signature(described.main).parameters.values()]
        if described.source:
            first, *own = inspect.signature(get_function(name)).parameters.values()
            # The result of the other analysis, which has the same name.
            assert first.name == described.source
            parameters += own
        for parameter in parameters:
            if parameter.name in described.frames:
                needed = parameter.default is parameter.empty
                assert not needed or parameter.name in described.loaded
            elif (name, parameter.name) == ("missed-proposals", "stats"):
                # Income is always loaded, and daily statistics are used instead of it.
                assert parameter.name not in options
            else:
                assert parameter.name in options, (name, parameter.name)


def test_epochs_are_days_of_the_index_where_no_proposal_sets_the_range():
    """An option has epochs, and an index has days of 225."""
    described = list_analyses()["missed-proposals"]
    given = {"since": 450, "until": "2026-10-01"}
    proposals = {"proposals": pl.DataFrame({"epoch": []}, schema={"epoch": pl.Int64})}
    explorer: Any = SimpleNamespace(chain=MAINNET)

    call = build_call(described, "index", given, proposals, explorer)

    assert {"since": 2, "until": "2026-10-01"} == call


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_is_analysed_like_its_frame(run, files, tmp_path, suffix):
    """Exact to the last digit, in ether, into another file."""
    (file,) = files(income=(INCOME, suffix))
    out = tmp_path / "out.parquet"

    ended = run(
        *("income", "--input", file, "--every", "week", "--by", "validator_index"),
        *("--tz", "Europe/Berlin", "--coverage", "--unit", "eth", "--out", out),
    )

    assert ended.exit_code == 0, ended.stderr
    expected = analysis.income(
        INCOME, every="week", by="validator_index", tz="Europe/Berlin", coverage=True
    )
    assert_frame_equal(bf.to_eth(expected, exact=True), pl.read_parquet(out))


def test_a_file_without_option_is_the_first_frame(run, files):
    """Step 12, 8: as with `plot`, the file follows the name."""
    (file,) = files(income=(INCOME, "parquet"))

    plain = run("income", file, "--every", "all", "--json")

    assert plain.exit_code == 0, plain.stderr
    assert plain.stdout == run("income", "--input", file, "--every", "all", "--json").stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_ledger_of_three_files(run, files, suffix):
    """Prices are any table with a time: a day is its first instant in UTC."""
    prices = ledger.PRICES.select(pl.col("time").dt.date(), "eur").unique("time").sort("time")
    income, paid, price = files(
        income=(ledger.EARNED, "parquet"), paid=(ledger.PAID, "parquet"), prices=(prices, suffix)
    )

    ended = run(
        *("ledger", "--input", income, "--input", f"withdrawals={paid}"),
        *("--input", f"prices={price}", "--price", "eur", "--format", "csv"),
    )

    assert ended.exit_code == 0, ended.stderr
    at_midnight = prices.with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))
    expected = analysis.ledger(ledger.EARNED, ledger.PAID, at_midnight, price="eur")
    printed = pl.read_csv(ended.stdout.encode(), schema=expected.schema)
    assert_frame_equal(expected, printed)


def test_rows_of_a_tax_tool_are_not_escaped(run, files, monkeypatch):
    """Tax tools import no apostrophes, and no text of these rows is from the chain."""
    income, paid = files(income=(ledger.EARNED, "parquet"), paid=(ledger.PAID, "parquet"))
    monkeypatch.setattr(analysis, "tax_rows", lambda *_, **__: pl.DataFrame({"label": ["=1"]}))
    words = ("ledger", income, "--input", f"withdrawals={paid}", "--tool", "koinly")

    assert '"label"\n"=1"\n' == run(*words, "--format", "csv").stdout


def test_prices_of_a_csv_file_are_read_as_those_of_a_report(run, files, tmp_path):
    """Dates and times may be mixed; other orders of day and month are an error with its line."""
    (income,) = files(income=(ledger.EARNED, "parquet"))
    (tmp_path / "prices.csv").write_text("time,eur\n2026-10-01,2500\n2026-10-02 12:30:00,2600\n")
    (tmp_path / "other.csv").write_text("time,eur\n05/10/2026,2500\n")
    given = ("ledger", income, "--input", f"withdrawals={files(w=(ledger.PAID, 'parquet'))[0]}")

    ended = run(*given, "--input", f"prices={tmp_path}/prices.csv", "--price", "eur")
    other = run(*given, "--input", f"prices={tmp_path}/other.csv", "--price", "eur")
    wrong = run(*given, "--input", f"prices={tmp_path}/prices.csv", "--price", "usd")

    assert ended.exit_code == 0, ended.stderr
    assert (other.exit_code, wrong.exit_code) == (2, 2)
    assert f"line 2 of {tmp_path}/other.csv: '05/10/2026' is not a valid time" in other.stderr
    assert "has no column usd; its columns are time, eur" in wrong.stderr
    assert "named by --price" in wrong.stderr


@pytest.mark.parametrize("analysis", ["relay-payments", "upcoming-duties"])
def test_a_range_that_no_loader_has_is_refused(run, analysis):
    """The blocks of producers, and the validators, are all that there are."""
    ended = run(analysis, "--validators", "1", "--since", "-10", "--local")

    assert (2, "") == (ended.exit_code, ended.stdout)
    assert "No such option '--since'" in ended.stderr


def test_ether_are_numbers_in_excel(run, files, tmp_path):
    """A spreadsheet does not add up text: ether are numbers, and days are dates."""
    openpyxl = pytest.importorskip("openpyxl")
    (file,) = files(income=(INCOME, "parquet"))
    out = tmp_path / "days.xlsx"

    ended = run("income", file, "--every", "day", "--unit", "eth", "--out", out)

    assert ended.exit_code == 0, ended.stderr
    expected = bf.to_eth(analysis.income(INCOME, every="day"))
    head, *rows = openpyxl.load_workbook(out)["rows"].values
    found = dict(zip(head, zip(*rows, strict=True), strict=True))
    assert expected["date"].to_list() == [value.date() for value in found["date"]]
    # Spreadsheets have 15 digits, and the file 16.
    assert expected["net_income_eth"].to_list() == pytest.approx(found["net_income_eth"], rel=1e-15)


def test_a_ledger_as_file_of_a_tax_tool_and_by_year(run, files, tmp_path):
    """Step 13: taxes without Python; losses in Koinly have no apostrophe before their sign."""
    prices = ledger.PRICES.select("time", "eur")
    income, paid, price = files(
        income=(ledger.EARNED, "parquet"), paid=(ledger.PAID, "parquet"), prices=(prices, "csv")
    )
    given = ["ledger", income, "--input", f"withdrawals={paid}", "--tz", "Europe/Berlin"]
    given += ["--input", f"prices={price}", "--price", "eur"]
    book = analysis.ledger(ledger.EARNED, ledger.PAID, prices, price="eur", tz="Europe/Berlin")

    for tool in ("koinly", "rotki"):
        ended = run(*given, "--tool", tool, "--out", out := tmp_path / f"{tool}.csv")
        assert ended.exit_code == 0, ended.stderr
        rows = analysis.tax_rows(book, tool, price="eur", tz="Europe/Berlin")
        assert rows.height
        assert_frame_equal(rows, pl.read_csv(out, schema=rows.schema))
    years = run(*given, "--yearly", "--starts", "04-06", "--format", "csv")
    totals = analysis.yearly_totals(book, starts="04-06")
    assert_frame_equal(totals, pl.read_csv(years.stdout.encode(), schema=totals.schema))
    for more in (["--tool", "rotki", "--yearly"], ["--starts", "04-06"]):
        assert run(*given, *more).exit_code == 2


def test_rows_are_loaded(run, chain):
    """The first frame sets the range of the others; `analyze` is the same command."""
    ended = run(
        *("income", "--validators", "0-40", "--since", "460", "--until", "467"),
        *("--with", "blocks", "--by", "validator_index", "--json", "--dataset", chain.path),
        command="analyze",
    )

    assert ended.exit_code == 0, ended.stderr
    report = json.loads(ended.stdout)
    rows = chain.scan("income_history").filter(
        pl.col("validator_index") <= 40, pl.col("epoch").is_between(460, 467)
    )
    with bf.open(chain.path):
        blocks = bf.load_produced_blocks(range(41))
    expected = analysis.income(rows.collect(), blocks=blocks, by="validator_index")
    assert ("income", True, 41) == (report["analysis"], report["complete"], report["rows"])
    assert [str(wei) for wei in expected["net_income_wei"]] == [
        row["net_income_wei"] for row in report["data"]
    ]
    assert 0 == report["requests"]


def test_loaded_balances_reconcile_with_loaded_income(run, chain):
    """The chain's own arithmetic: no gwei is unexplained between two blocks of its own."""
    ended = run(
        *("reconcile", "--validators", "1-20", "--since", "440", "--until", "460", "--json"),
        *("--attestations-settle", "0", "--dataset", chain.path),
    )

    assert ended.exit_code == 0, ended.stderr
    rows = json.loads(ended.stdout)["data"]
    assert len(rows) > 200
    assert {0} == {row["unexplained_gwei"] for row in rows}


@pytest.mark.parametrize(
    ("bounds", "epochs"),
    [
        (("--since", "-9", "--until", "-2"), range(459, 467)),
        (("--since", "-9", "--until", "latest"), range(459, 468)),
    ],
)
def test_relative_bounds_count_from_one_head(run, chain, monkeypatch, bounds, epochs):
    """An income history ends with the final epoch, 467, and balances with the head, 469."""
    with bf.open(chain.path) as opened:
        assert (469, 467) == tuple(
            opened.chain_head.latest("epoch", finalized=final) for final in (False, True)
        )
    ranges = []

    def read(frames):
        return {name: rows["epoch"].unique().sort().to_list() for name, rows in frames.items()}

    monkeypatch.setattr(analyse, "print_left_out", lambda _, frames: ranges.append(read(frames)))
    ended = run("attestation-losses", "--validators", "1-20", *bounds, "--dataset", chain.path)

    assert ended.exit_code == 0, ended.stderr
    assert [{"income": [*epochs], "balances": [*epochs]}] == ranges


def test_frames_of_days_and_of_states_set_the_range(run, chain):
    """Proposals are loaded for the days of the statistics, committees of the current period."""
    luck = run(
        *("daily-luck", "--validators", "3,5", "--since", "1", "--until", "1", "--json"),
        *("--dataset", chain.path),
    )
    coming = run(
        *("upcoming-duties", "--validators", "0-40", "--with", "committees", "--json"),
        *("--with", "duties", "--dataset", chain.path),
    )

    assert luck.exit_code == 0, luck.stderr
    proposer = pl.col("proposer_index").is_in([3, 5])
    blocks = chain.scan("blocks").filter(proposer, pl.col("epoch").is_between(225, 449)).collect()
    rows = json.loads(luck.stdout)["data"]
    assert blocks["slot"].n_unique() == sum(row["drawn"] for row in rows)
    assert {7200} == {row["slots"] for row in rows}
    assert coming.exit_code == 0, coming.stderr
    kinds = {row["kind"] for row in json.loads(coming.stdout)["data"]}
    assert "in sync committee" in kinds
    assert "--with" not in coming.stderr


def test_duties_that_are_not_loaded_are_named(run, chain):
    """Without sync committees, an operator would read an empty list as "no duties"."""
    call = ("upcoming-duties", "--validators", "3", "--dataset", chain.path)
    neither = run(*call)
    committees = run(*call, "--with", "committees")

    expected = "sync committees and proposals are listed with --with committees --with duties"
    assert expected in neither.stderr
    assert "proposals are listed with --with duties" in committees.stderr
    assert "sync committees" not in committees.stderr


@pytest.mark.more
def test_missing_rows_have_their_exit_code(run, chain):
    """The other rows are analysed, and printed; validators of a file are those to load."""
    ended = run(
        *("completeness", "--validators", "1,5000", "--since", "466", "--until", "467"),
        *("--format", "csv", "--dataset", chain.path),
    )

    assert ended.exit_code == 3
    assert ended.stdout.splitlines() == [
        '"validator_index","epoch","state"',
        '1,466,"present"',
        '1,467,"present"',
    ]


@pytest.mark.more
def test_validators_and_epochs_of_a_file_are_those_to_load(run, files, chain):
    """A second frame is loaded for the rows of the first."""
    rows = chain.scan("income_history").filter(
        pl.col("validator_index").is_in([4, 9]), pl.col("epoch").is_between(225, 449)
    )
    (file,) = files(income=(rows.collect(), "parquet"))

    ended = run("own-yield", "--input", file, "--json", "--dataset", chain.path)

    assert ended.exit_code == 0, ended.stderr
    assert [(1, 2)] == [(row["day"], row["validators"]) for row in json.loads(ended.stdout)["data"]]


@pytest.mark.more
@pytest.mark.parametrize(
    ("tz", "day", "hours"),
    [
        ("Europe/Berlin", "2026-10-01", ("2026-09-30T22:00", "2026-10-01T21:59")),
        ("America/New_York", "2026-10-01", ("2026-10-01T04:00", "2026-10-02T03:59")),
        ("UTC", "2026-10-01", ("2026-10-01T00:00", "2026-10-01T23:59")),
    ],
)
def test_dates_of_a_range_are_days_of_the_time_zone(run, chain, tz, day, hours):
    """Bounds in UTC cut the first or the last day of a ledger, without a warning."""
    dates = ("--validators", "3", "--since", day, "--until", day, "--tz", tz)
    place = ("--dataset", chain.path, "--format", "csv")

    ended = run("ledger", *dates, *place)
    since, until = hours
    exact = run(
        "ledger", "--validators", "3", "--since", since, "--until", until, "--tz", tz, *place
    )

    assert ended.exit_code == 0, ended.stderr
    rows = pl.read_csv(ended.stdout.encode())
    assert [day] == rows["date"].to_list()
    assert ended.stdout == exact.stdout


@pytest.mark.parametrize("name", every(3, list_analyses()))
def test_every_analysis_accepts_frames_without_rows(name):
    """So that the command finds wrong arguments before any request."""
    described = list_analyses()[name]
    epoch = {"epoch": 1} if name == "upcoming-duties" else {}
    for wanted in (described.loaded, described.loaders):
        frames = build_empty(described, {}, list(wanted))

        rows = described.main(**frames, **epoch)

        assert rows.height <= 1
        if described.source:
            assert get_function(name)(rows).height == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("income --by operater", "no column operater"),
        ("income --columns date,income", "--columns: there is no column 'income'"),
        ("income --unit eth --columns net_income_wei", "no column 'net_income_wei'"),
        ("income --tz Berlin", "--tz 'Berlin' is not a time zone"),
        ("ledger --input prices=prices.csv --price usd", "has no column usd"),
        ("ledger --input prices=prices.parquet --price usd", "no column usd"),
        ("ledger --tool koinly --columns date", "there is no column 'date'"),
        ("upcoming-duties --columns x", "there is no column 'x'"),
        ("incidents --input groups=twice.csv", "validator 3 is in several groups"),
        ("incidents --input groups=prices.csv", "no column validator_index"),
        ("incidents --kind lost", "'lost' is not one of 'offline', 'missed votes'"),
    ],
)
def test_wrong_arguments_are_errors_before_any_request(
    run, arguments, text, explorer, tmp_path, monkeypatch
):
    """Exit code 2 means that no request was sent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("time,eur\n2026-10-01,2500\n")
    (tmp_path / "twice.csv").write_text("validator_index,group\n3,A\n3,B\n")
    ledger.PRICES.write_parquet(tmp_path / "prices.parquet")
    since = () if arguments.startswith("upcoming") else ("--since", "440")

    ended = run(*arguments.split(), "--validators", "3", *since, "--url", explorer.url)

    assert (2, 0) == (ended.exit_code, explorer.service.requests), ended.stderr
    assert text in ended.stderr


@pytest.fixture
def problem_files(files):
    """Options with files: 1 to 3 were offline, 0 missed a vote, 4 is slashed, 5 has advice."""
    missed = {0: (9,), 1: range(3, 7), 2: range(4, 7), 3: range(3, 12)}
    income = history(
        *((v, e, MISSED if e in missed.get(v, ()) else VOTED) for v in range(6) for e in range(12))
    )
    changes = [{}, {}, {}, {}, {"slashed": True}, {"withdrawal_credentials": "0x01" + "0" * 62}]
    frames = {
        "income": income,
        "balances": stakes(income),
        "validators": validators(*changes),
        "proposals": ledger.EARNED.select(
            "epoch", "time", slot=pl.col("epoch") * 32, status=pl.lit("proposed"), proposer_index=0
        ),
    }
    paths = files(**{name: (frame, "parquet") for name, frame in frames.items()})
    return [
        text
        for name, path in zip(frames, paths, strict=True)
        for text in ("--input", f"{name}={path}")
    ]


def read_rows(ended, *names):
    """The rows of CSV output, as texts."""
    rows = pl.read_csv(ended.stdout.encode(), infer_schema=False)
    return rows.select(names).rows()


def test_incidents_are_those_of_the_problems(run, files, tmp_path, problem_files):
    """The frames are those of `problems`; groups are a file, and the text of indices an option."""
    groups = tmp_path / "machines.csv"
    groups.write_text("validator_index,group\n1,north\n2,north\n3,north\n4,south\n")

    ended = run("incidents", *problem_files, "--input", f"groups={groups}", "--format", "csv")

    assert ended.exit_code == 0, ended.stderr
    names = ("kind", "validators", "cost_gwei", "count", "group", "validator_indices")
    assert [
        ("offline", "3", "16000", "16", "north", "1-3"),
        ("missed votes", "1", "1000", "1", None, "0"),
        ("slashed", "1", "0", None, "south", "4"),
        ("not compounding", "1", None, "1", None, "5"),
    ] == read_rows(ended, *names)


@pytest.mark.more
@pytest.mark.parametrize(
    ("options", "problems", "incidents"),
    [
        (("--kind", "slashed", "--kind", "missed votes"), [0, 4], ["0", "4"]),
        # The slashing had no penalty in this time; advice has no cost.
        (("--min-cost", "0.000004"), [3, 1], ["1-3"]),
        (("--min-cost", "0.00001", "--kind", "offline"), [], ["1-3"]),
        (("--avoidable",), [3, 1, 2, 0, 4], ["1-3", "0", "4"]),
        *(
            pytest.param(*case, marks=pytest.mark.more)
            for case in (
                ((), [3, 1, 2, 0, 4, 5], ["1-3", "0", "4", "5"]),
                (("--kind", "offline"), [3, 1, 2], ["1-3"]),
                (("--kind", "late votes"), [], []),
                (("--min-cost", "0.0000040000001"), [3], ["1-3"]),
                (("--min-cost", "0.00001"), [], ["1-3"]),
                (("--min-cost", "0"), [3, 1, 2, 0, 4], ["1-3", "0", "4"]),
                (("--kind", "not compounding", "--avoidable"), [], []),
            )
        ),
    ],
)
def test_problems_and_incidents_are_selected_by_kind_cost_and_blame(
    run, problem_files, options, problems, incidents
):
    """A cost in ETH is that of the row: of one problem, or of a whole incident."""
    for name, column, expected in (
        ("problems", "validator_index", [str(index) for index in problems]),
        ("incidents", "validator_indices", incidents),
    ):
        ended = run(name, *problem_files, *options, "--format", "csv")

        assert ended.exit_code == 0, ended.stderr
        assert expected == [value for (value,) in read_rows(ended, column)]


def test_an_incident_with_an_unknown_part_of_the_cost_may_be_large():
    """A minimum cost hides only what is known to be less."""
    each = found({"cost_gwei": 5}, {"cost_gwei": None}, {"cost_gwei": 5, "first_epoch": 200})

    rows = analysis_results.select_problems(analysis.incidents(each), min_cost=6)

    assert [("0-1", 5, 1)] == rows.select("validator_indices", "cost_gwei", "cost_unknown").rows()


@pytest.mark.parametrize("name", ["problems", "incidents"])
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 10),
        pytest.param(("--kind", "slashed"), 10, marks=pytest.mark.more),
        pytest.param(("--kind", "late votes"), 0, marks=pytest.mark.more),
        (("--kind", "not compounding"), 0),
        (("--kind", "not compounding", "--kind", "offline", "--columns", "count"), 10),
        pytest.param(
            ("--min-cost", "0.00001", "--kind", "missed votes"), 0, marks=pytest.mark.more
        ),
    ],
)
def test_the_exit_code_says_whether_problems_are_left(run, problem_files, name, options, code):
    """For cron: 10 with at least one row that is not advice, and only with --exit-code."""
    assert 0 == run(name, *problem_files, *options).exit_code

    ended = run(name, *problem_files, *options, "--exit-code", "--json")

    assert code == ended.exit_code, ended.stderr
    assert {"complete": True, "analysis": name}.items() <= json.loads(ended.stdout).items()


def test_missing_rows_are_said_before_problems(run, chain):
    """Exit code 3: with rows missing, no code says that all problems are known."""
    range_ = ("--since", "440", "--until", "467", "--dataset", chain.path)

    complete = run("incidents", "--validators", "0-40", *range_, "--exit-code")
    ended = run("incidents", "--validators", "0-40,5000", *range_, "--exit-code")

    assert (10, 3) == (complete.exit_code, ended.exit_code)
    assert complete.stdout == ended.stdout
    # Each of several loads warns of the same validator.
    assert 1 == ended.stderr.count("1 unknown to the service (5000)")


@pytest.mark.parametrize("cost", ["x", "-1", "nan", "inf", "1e30", "1,5", ""])
def test_a_minimum_cost_is_an_amount_in_ether(run, problem_files, cost):
    """The message has the value, and an example."""
    ended = run("problems", *problem_files, "--min-cost", cost)

    assert (2, "") == (ended.exit_code, ended.stdout)
    assert f"{cost!r} is not an amount in ETH, such as 0.01" in ended.stderr


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("income", 2, "--input or --validators is required"),
        ("income --input FILE --since 5", 2, "--input and --since exclude each other"),
        ("income --input FILE --url http://127.0.0.1:9", 2, "--input and --url exclude"),
        ("income --input FILE --input FILE", 2, "two files for frame"),
        ("income FILE --input FILE", 2, "two files for frame"),
        ("income --input FILE --by operater", 2, "no column operater"),
        ("income --input FILE --every hour", 2, "'hour' is not one of 'epoch', 'day', 'week'"),
        ("income --input absent.parquet", 9, "does not exist"),
        ("income --input FILE.xlsx", 2, "Suffixes: .parquet, .csv, .jsonl, .arrow\n"),
        ("ledger --input FILE --validators 1 --dataset x", 9, "x"),
        ("ledger --input nosuch=FILE --since 5", 2, "there is no frame 'nosuch'. Write NAME=FILE"),
        ("incom --input FILE", 2, "did you mean 'income'?"),
        ("completeness --input FILE --since 1d --input validators=FILE", 2, "is not an epoch"),
    ],
)
def test_errors_have_one_line_and_an_exit_code(run, files, line, code, text):
    """Invalid command lines are refused before the first request."""
    (file,) = files(income=(INCOME, "parquet"))

    ended = run(*line.replace("FILE", str(file)).split())

    assert ended.exit_code == code
    assert text in ended.stderr
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1


def test_rows_of_days_need_all_epochs_of_their_days():
    """Days of mainnet have 225 epochs: days 3 to 9 in any order are epochs 675 to 2249."""
    explorer = SimpleNamespace(chain=MAINNET)

    epochs = find_epochs(pl.DataFrame({"day": [5, 9, 3]}), explorer)

    assert {"since": 675, "until": 2249} == epochs
