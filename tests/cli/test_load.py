"""`beaconframes load`: every loader as a command."""

from __future__ import annotations

import csv
import io
import json
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime

import click
import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.cli import (
    argument_texts,
    commands,
    docstrings,
    key_file,
    loader_options,
    rendering,
)
from beaconframes.cli.argument_texts import parse_validators
from beaconframes.cli.from_signature import pop_arguments
from beaconframes.cli.output import completeness_facts
from beaconframes.cli.runner import RunState
from beaconframes.endpoint import ValidatorSelector
from beaconframes.errors import ConfigError, UsageError
from beaconframes.server import Server

from ..support.untrusted_texts import TEXTS

UNREACHABLE = ["--url", "http://127.0.0.1:9"]
"""No service listens there; a request would end with exit code 6."""
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def run(chain):
    """Run a command with a local explorer of the small chain."""

    def invoke(*arguments, served=True, **more):
        place = ["--dataset", str(chain.path)] if served else []
        return CliRunner().invoke(commands, [*map(str, arguments), *place], **more)

    return invoke


@pytest.fixture
def income(chain):
    """The income of validators 1 to 3 in the last two finalized epochs, read from the dataset."""
    last = chain.meta["finalized_epoch"]
    return (
        chain.scan("income_history")
        .filter(pl.col("validator_index").is_in([1, 2, 3]), pl.col("epoch") >= last - 1)
        .sort("validator_index", "epoch")
        .collect()
    )


def test_every_loader_has_a_command_with_its_arguments():
    """V1 and V2, except that of an image; each argument is an option of a known kind."""
    for version, module in ((1, bf), (2, bf.v2)):
        names = [n for n in dir(module) if n.startswith("load_") and n != "load_chart"]
        assert names == sorted(
            f"load_{n.replace('-', '_')}" for n in loader_options.list_loaders(version)
        )
        for name in loader_options.list_loaders(version):
            loader = loader_options.find_loader(name, version)
            options = [each.build() for each in loader_options.list_arguments(loader).values()]
            assert list(loader_options.list_arguments(loader)) == [
                option.name for option in options
            ]
            assert docstrings.describe(loader)


def test_a_table_fits_the_terminal(run, income):
    """The first rows in the width of the terminal, and the number of hidden rows and columns."""
    result = run("load", "income-history", "--validators", "1,2,3", "--since", "-2", "--rows", "4")

    lines = result.stdout.splitlines()
    assert 0 == result.exit_code
    assert "" == result.stderr
    assert ["validator_index", "epoch", "time"] == lines[0].split()[:3]
    first = income.row(0, named=True)
    assert [str(first["validator_index"]), str(first["epoch"])] == lines[1].split()[:2]
    assert "... 2 more rows" == lines[5]
    rows = pl.DataFrame({"validator_index": [1, 2], "epoch": [3, 4]})
    assert ["... 1 more row", "... 1 more column: epoch"] == [*rendering.format_table(rows, 1, 15)][
        2:
    ]
    assert re.fullmatch(r"\.\.\. \d+ more columns: .*tx_fee_reward_wei", lines[6])
    assert all(len(line) <= 100 for line in lines[:5])


def test_a_wide_table_of_few_rows_has_one_line_for_each_column():
    """The sum at the end of a row is what a user looks for, so no column is hidden."""
    values = {"year": [2025, 2026], "income_gwei": [7, 1234], "withdrawals": ["é", None]}
    rows = pl.DataFrame(values)

    vertical = ["year         2025  2026", "income_gwei  7     1234", "withdrawals  é     -"]
    assert vertical == [click.unstyle(line) for line in rendering.format_table(rows, 2, 23)]
    hidden = "... 1 more column: withdrawals"
    assert hidden == [*rendering.format_table(rows, 2, 22)][-1]
    assert hidden == [*rendering.format_table(pl.concat([rows, rows]), 4, 23)][-1]


def test_json_has_completeness_and_exact_rows(run, income):
    """One object: completeness, number of requests, and the exact rows."""
    result = run("load", "income-history", "--validators", "1-3", "--since", "-2", "--json")

    report = json.loads(result.stdout)
    assert 0 == result.exit_code
    assert (True, 6, "load_income_history", [], []) == (
        report["complete"], report["rows"], report["loader"], report["missing"], report["warnings"],
    )  # fmt: skip
    assert 0 == report["requests"]  # a dataset needs none
    first, expected = report["data"][0], income.row(0, named=True)
    assert expected["attestation_head_reward_gwei"] == first["attestation_head_reward_gwei"]
    assert str(expected["tx_fee_reward_wei"]) == first["tx_fee_reward_wei"]
    assert datetime.fromisoformat(first["time"]).tzinfo == UTC


@pytest.mark.more
@pytest.mark.parametrize(
    ("ending", "read"),
    [
        ("parquet", pl.read_parquet),
        ("arrow", pl.read_ipc),
        ("csv", pl.read_csv),
        ("jsonl", pl.read_ndjson),
    ],
)
def test_the_suffix_chooses_the_format(run, income, tmp_path, ending, read):
    """All rows in every format."""
    out = tmp_path / f"income.{ending}"

    result = run("load", "income-history", "--validators", "1..3", "--since", "-2", "--out", out)

    assert 0 == result.exit_code
    assert f"{out}: 6 rows, {out.stat().st_size:,} bytes\n" == result.stdout
    found = read(out)
    assert income.columns == [c for c in found.columns if c in income.columns]
    assert_frame_equal(
        income.select("validator_index", "epoch", "attestation_head_reward_gwei"),
        found.select("validator_index", "epoch", "attestation_head_reward_gwei"),
    )


def test_a_file_is_replaced_only_with_overwrite(run, tmp_path):
    """C03: the error comes before the first request; --overwrite leaves no other file."""
    out = tmp_path / "state.parquet"
    out.write_text("old")

    refused = run("load", "latest-state", "--out", out)

    assert 9 == refused.exit_code
    assert "" == refused.stdout
    assert "--overwrite" in refused.stderr
    assert "old" == out.read_text()
    assert 0 == run("load", "latest-state", "--out", out, "--overwrite").exit_code
    assert 1 == pl.read_parquet(out).height
    assert [out] == list(tmp_path.iterdir())


def test_a_failed_export_leaves_the_old_file(run, tmp_path, monkeypatch):
    """C03: a full disk at the end is an error, and the old file is unchanged."""
    out = tmp_path / "state.parquet"
    out.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = run("load", "latest-state", "--out", out, "--overwrite")

    assert 9 == result.exit_code
    assert "No space left on device" in result.stderr
    assert "old" == out.read_text()


KILLED = """
import os, pathlib, signal, sys
{where} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from beaconframes.cli import commands
commands.main(sys.argv[1:])
"""


@pytest.mark.long
@pytest.mark.parametrize("where", ["os.fsync", "pathlib.Path.replace"])
def test_a_kill_leaves_the_old_file(chain, tmp_path, where):
    """Until the rename the old file is complete; the next call replaces it."""
    out = tmp_path / "epochs.parquet"
    out.write_text("old")
    words = ["load", "epochs", "--dataset", str(chain.path), "--out", str(out), "--overwrite"]

    killed = subprocess.run(
        [sys.executable, "-c", KILLED.format(where=where), *words], check=False, capture_output=True
    )

    assert -9 == killed.returncode
    assert "old" == out.read_text()
    assert 0 == CliRunner().invoke(commands, words).exit_code
    assert pl.read_parquet(out).height
    assert [out] == list(tmp_path.iterdir())


def test_invalid_targets_are_refused(run, tmp_path):
    """A missing folder, a folder, a device, an unknown format."""
    for options in (
        ["--out", tmp_path / "no" / "x.csv"],
        ["--out", tmp_path],
        ["--out", tmp_path / "x.csv", "--format", "parquet"],
        ["--out", tmp_path / "x.csv", "--format", "odt"],
        ["--out", "-"],
        ["--out", "/dev/null"],
        ["--format", "parquet"],
        ["--format", "csv", "--json"],
    ):
        result = run("load", "latest-state", *options, *UNREACHABLE, served=False)

        assert 2 == result.exit_code
        assert "" == result.stdout
        assert 1 == result.stderr.count("\n")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["y.json", "x.csv.gz", "old.txt", "rows", ".csv.d"])
@pytest.mark.parametrize("more", [[], ["--format", "csv"], ["--overwrite"]])
def test_a_name_without_the_suffix_of_a_format(run, tmp_path, name, more):
    """The error comes before the first request; existing files are unchanged."""
    there = tmp_path / "old.txt"
    there.write_text("old")

    result = run("load", "epochs", "--out", tmp_path / name, *more, *UNREACHABLE, served=False)

    assert (2, "") == (result.exit_code, result.stdout)
    assert f"{name} does not end with the suffix of a format" in result.stderr
    assert ".parquet, .csv" in result.stderr
    assert ("old", [there]) == (there.read_text(), list(tmp_path.iterdir()))


@pytest.mark.parametrize(
    "options",
    [
        ["--columns", "epoch,epochs"],
        ["--columns", "attestation_head_reward_eth"],
        ["--columns", "attestation_head_reward_gwei", "--unit", "eth"],
    ],
)
def test_an_unknown_column(run, options):
    """The error comes before the first request, and lists the columns in the chosen unit."""
    result = run(
        "load", "income-history", "--validators", "1", *options, *UNREACHABLE, served=False
    )

    assert (2, "") == (result.exit_code, result.stdout)
    assert "--columns: there is no column" in result.stderr
    assert ("tx_fee_reward_eth" if "--unit" in options else "tx_fee_reward_wei") in result.stderr


def test_columns_without_documentation(run):
    """Only the response has their names, so the request is sent."""
    result = run("load", "v2.state", "--columns", "what", *UNREACHABLE, served=False)

    assert 6 == result.exit_code


def test_rows_on_standard_output(run, income):
    """With --format and no file: every row, as in a file."""
    options = ["--validators", "1,2,3", "--since", "-2", "--columns", "epoch,validator_index"]
    result = run("load", "income-history", *options, "--format", "csv")

    rows = pl.read_csv(io.StringIO(result.stdout))
    assert_frame_equal(income.select("epoch", "validator_index"), rows)


def test_amounts_in_eth(run, income):
    """All digits of gwei and wei."""
    result = run(
        "load", "income-history", "--validators", "1-3", "--since", "-2", "--unit", "eth", "--json"
    )

    row = json.loads(result.stdout)["data"][0]
    gwei = income["attestation_head_reward_gwei"][0]
    assert not any(name.endswith(("_gwei", "_wei")) for name in row)
    assert f"0.{gwei:09}000000000" == row["attestation_head_reward_eth"]


def test_missing_rows_are_exit_code_3(run):
    """C06: all other rows are written; the exit code is 3, and JSON lists the missing rows."""
    table = run("load", "validators", "--validators", "1,5000")
    result = run("load", "validators", "--validators", "1,5000", "--json")
    strict = run("load", "validators", "--validators", "1,5000", "--strict")

    assert [3, 3, 3] == [table.exit_code, result.exit_code, strict.exit_code]
    assert 2 == len(table.stdout.splitlines()[:2])
    assert "warning" in table.stderr
    report = json.loads(result.stdout)
    assert (False, 1) == (report["complete"], report["rows"])
    assert [5000] == [missing["validator_index"] for missing in report["missing"]]
    assert "--strict" in report["warnings"][0]
    assert "" == strict.stdout


def test_all_warnings_share_one_limit_of_missing_rows():
    """JSON lists the first 1,000 missing rows, however many warnings name them."""
    state = RunState()
    for first in (0, 600):
        warning = bf.MissingRows("600 rows are missing")
        warning.missing = pl.DataFrame({"validator_index": range(first, first + 600)})
        state.warnings.append(warning)

    facts = completeness_facts(state)

    assert [*range(1000)] == [row["validator_index"] for row in facts["missing"]]
    assert 2 == len(facts["warnings"])


@pytest.mark.more
def test_loaders_of_v2_have_three_spellings(run):
    """--v2 before or after the loader, or v2. before its name; sets by their names."""
    result = [
        run("load", "rewards", "--v2", "--validators", "dashboard:1/2", "--json"),
        run("load", "--v2", "rewards", "--validators", "dashboard:1/2", "--json"),
        run("load", "v2.rewards", "--validators", "dashboard:1/2", "--json"),
    ]

    assert [0, 0, 0] == [one.exit_code for one in result]
    first = json.loads(result[0].stdout)
    assert [2, 6, 10] == [row["validator_index"] for row in first["data"]][:3]
    assert first["data"] == json.loads(result[1].stdout)["data"]
    assert first["data"] == json.loads(result[2].stdout)["data"]
    helped = run("load", "rewards", "--validators", "1", served=False)
    assert 2 == helped.exit_code
    assert "add --v2" in helped.stderr


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["withdrawal:0x" + "a" * 40], bf.v2.withdrawal("0x" + "a" * 40)),
        (["deposit-address:0x" + "b" * 40], bf.v2.deposit_address("0x" + "b" * 40)),
        (["entity:Lido", "sub-entity:csm"], bf.v2.entity("Lido", "csm")),
        (["owner:lido/csm", "operator:7"], bf.v2.owner("lido/csm", operator=7)),
        (["operator:csm"], bf.v2.operator("csm")),
        (["dashboard:7"], bf.v2.dashboard(7)),
        (["1,2-4"], [1, 2, 3, 4]),
    ],
)
def test_validators_of_v2(texts, expected):
    """Every set of validators that Python has."""
    assert expected == parse_validators("--validators", texts)


def test_sets_reach_every_endpoint_that_takes_them():
    """C9: every loader whose request has a set of validators parses one, not only `rewards`."""
    takes_set = {
        e.name.replace("_", "-")
        for e in bf.v2.ENDPOINTS
        if any(isinstance(parameter, ValidatorSelector) for parameter in e.all_parameters)
    }
    parsed = {
        name: pop_arguments(loader_arguments, dict.fromkeys(loader_arguments, ()) | given)
        for name in loader_options.list_loaders(2)
        for loader in [loader_options.find_loader(name, 2)]
        for loader_arguments in [loader_options.list_arguments(loader)]
        if "validators" in loader_arguments
        for given in [{"validators": ["dashboard:1"]}]
    }

    assert "validators" in takes_set
    assert takes_set == set(parsed)
    assert {bf.v2.dashboard(1)} == {arguments["validators"] for arguments in parsed.values()}


def test_a_set_of_validators_is_loaded(run):
    """C9: the dashboard number 1 of the local explorer has the first hundred validators."""
    result = run("load", "validators", "--v2", "--validators", "dashboard:1", "--json")

    rows = json.loads(result.stdout)["data"]
    assert list(range(100)) == [row["validator_index"] for row in rows]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("nofile.txt", 9, "--validators: there is no file nofile.txt. Check its name"),
        ("lists/mine", 9, "--validators: there is no file lists/mine"),
        ("dashboard:7", 2, "--validators dashboard:7 is a set of validators, and this command"),
        ("dashboard:7/2", 2, "loaders of V2 take sets, with load --v2"),
        ("1.5", 2, "'1.5' is not a validator"),
        ("me", 2, "'me' is not a validator"),
    ],
)
def test_missing_files_and_sets_of_validators(run, text, code, message):
    """A file that does not exist, and a set, are not called an invalid validator."""
    result = run("load", "validators", "--validators", text)

    assert (code, True) == (result.exit_code, message in result.stderr), result.stderr


@pytest.mark.parametrize(
    "texts",
    [["dashboard:x"], ["dashboard:1", "2"], ["owner:a", "owner:b"], ["sub-entity:a"], ["entity:"]],
)
def test_invalid_sets_are_refused_before_a_request(texts):
    """The error comes before the first request."""
    with pytest.raises(UsageError):
        parse_validators("--validators", texts)


def test_a_region_of_the_wall(run):
    """A region is four numbers; a flag has no value."""
    result = run(
        *("load", "graffiti-wall", "--region", "450,0,499,480"),
        *("--since", "0", "--summarize", "--json"),
    )

    rows = json.loads(result.stdout)["data"]
    assert 0 == result.exit_code
    assert rows
    assert all(450 <= row["x"] <= 499 and row["y"] <= 480 for row in rows)
    assert 2 == run("load", "graffiti-wall", "--region", "0,0,99").exit_code


STDIN = b"\xef\xbb\xbf# mine\r\n1, 2 # two\r\n\r\n3\r\n2\r\n"


def test_validators_from_standard_input(run):
    """C08: with a byte order mark, Windows line ends, comments and empty lines."""
    result = run("load", "validators", "--validators", "-", "--json", input=STDIN)

    assert 0 == result.exit_code
    assert [1, 2, 3] == [row["validator_index"] for row in json.loads(result.stdout)["data"]]


def test_validators_from_a_file(run, tmp_path):
    """A file with a list, as in `report` and `index`; lines that are invalid have a number."""
    (file := tmp_path / "mine.txt").write_bytes(STDIN)
    result = run("load", "validators", "--validators", str(file), "--validators", "4", "--json")
    file.write_text("1\nnonsense\n")
    invalid = run("load", "validators", "--validators", str(file))

    assert [1, 2, 3, 4] == [row["validator_index"] for row in json.loads(result.stdout)["data"]]
    assert 2 == invalid.exit_code
    assert "line 2 of " in invalid.stderr


def test_numbers_and_an_empty_text_are_no_files(run, tmp_path, monkeypatch):
    """Whatever the working directory has: an empty variable of a shell is no folder of keys."""
    monkeypatch.chdir(tmp_path)
    for name in ("100", "1-2", "keys.json"):
        (tmp_path / name).write_text("[7]")

    assert [100] == argument_texts.parse_list("--validators", ["100"])
    assert [1, 2] == argument_texts.parse_list("--validators", ["1-2"])
    result = run("load", "validators", "--validators", "")
    assert (2, True) == (result.exit_code, "--validators" in result.stderr)
    assert "empty" in result.stderr


@pytest.mark.parametrize("option", ["VALIDATORS", "--validators"])
def test_a_list_that_is_longer_than_a_file_name(option):
    """A list of 300 validators is no name of a file, and no OSError."""
    texts = ",".join(map(str, range(300)))

    assert [*range(300)] == argument_texts.parse_list(option, [texts])


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"1\n2\nthree\n4\n", "line 3 "),
        (b"1\n\xff\xfe\n", "line 2 "),
        (b"# nothing\n\n", "is empty"),
        (b"1\n" * 4999 + b"0x12\n", "line 5,000 "),
        (b"1\n9-2\n", "line 2 "),
        (b"\x1b[2J\n", "line 1 "),
    ],
)
def test_an_invalid_line_is_reported_by_number(run, raw, line):
    """C08: the error comes before the first request; its message has no control characters."""
    result = run("load", "validators", "--validators", "-", input=raw)

    assert 2 == result.exit_code
    assert line in result.stderr
    assert "\x1b" not in result.stderr
    assert "" == result.stdout


@pytest.mark.long
def test_a_million_lines(monkeypatch):
    """They are streamed, and all are parsed."""
    lines = io.TextIOWrapper(io.BytesIO(b"".join(b"%d\r\n" % n for n in range(1_000_000))))
    monkeypatch.setattr("sys.stdin", lines)

    assert list(range(1_000_000)) == argument_texts.parse_list("--validators", ["-"])


@pytest.mark.long
def test_the_last_of_a_million_lines_is_invalid(monkeypatch):
    """The message has its line number, also after comments and empty lines."""
    good = (b"%d # of mine\r\n" % n if n % 2 else b"\r\n" for n in range(999_999))
    lines = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + b"".join(good) + b"nonsense\r\n"))
    monkeypatch.setattr("sys.stdin", lines)

    with pytest.raises(UsageError, match="line 1,000,000 of standard input"):
        argument_texts.parse_list("--validators", ["-"])


def test_a_huge_range_is_refused():
    """A mistyped range does not fill the memory."""
    with pytest.raises(UsageError):
        argument_texts.parse_list("--slots", ["1-99999999999"])


@pytest.mark.parametrize("text", ["1,,2", "1, ,2", ",1"])
def test_an_empty_item_is_refused(text):
    """A comma too many may be a validator too few."""
    with pytest.raises(UsageError, match=f"--validators has an empty item: '{text}'"):
        argument_texts.parse_list("--validators", [text])
    assert [1, 2] == argument_texts.parse_list("--validators", ["1, 2,"])


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_is_escaped(text):
    """C04: in a table and in JSON one row is one line; a JSON parser restores the text."""
    frame = pl.DataFrame({"slot": [1], "graffiti": [text], text[:20]: ["x"]})

    table = list(rendering.format_table(frame, 10, 100))

    assert not CONTROL.search("\n".join(table).replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert not any("\n" in line for line in table)
    report = rendering.format_json(frame.to_dicts())
    assert not CONTROL.search(report)
    assert not re.search(r"[^\x20-\x7e]", report)
    assert text == json.loads(report)[0]["graffiti"]


def test_wide_letters_in_a_table():
    """A wide letter takes two columns of the terminal, a combining accent none."""
    frame = pl.DataFrame({"name": ["漢字", "abcd", "e\u0301fgh"], "n": [1, 2, 3]})

    table = list(rendering.format_table(frame, 10, 100))

    assert [4 + 2, 4 + 2, 4 + 2] == [
        rendering.display_width(line[: line.rindex(" ") + 1]) for line in table[1:]
    ]


@pytest.mark.more
def test_only_a_terminal_has_colours(run, monkeypatch):
    """A terminal has colours, a pipe has none; NO_COLOR turns them off."""
    plain = run("load", "latest-state")
    shown = run("load", "latest-state", color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    never = run("load", "latest-state", color=True)

    assert "\x1b[1m" not in plain.stdout
    assert "\x1b[1m" in shown.stdout
    assert "\x1b[1m" not in never.stdout


def test_a_key_file(chain, tmp_path, monkeypatch):
    """The key is sent, and no output contains it; a file that others can read is refused."""
    file = tmp_path / "key"
    file.write_text("sesame\n")
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with Server(chain, keys=["sesame"]) as server:
        options = ["load", "latest-state", "--url", server.url, "--json"]
        without = CliRunner().invoke(commands, options)
        result = CliRunner().invoke(commands, [*options, "--key-file", str(file)])
        monkeypatch.setenv("BEACONFRAMES_URL", server.url)
        monkeypatch.setenv("BEACONFRAMES_API_KEY", "sesame")
        environment = CliRunner().invoke(commands, ["load", "latest-state", "--json"])
    file.chmod(0o640)
    open_to_others = CliRunner().invoke(commands, [*options, "--key-file", str(file)])

    assert [4, 0, 0, 2] == [
        without.exit_code, result.exit_code, environment.exit_code, open_to_others.exit_code,
    ]  # fmt: skip
    assert "chmod 600" in open_to_others.stderr
    assert not any("sesame" in t.output for t in (without, result, environment, open_to_others))


def test_a_folder_as_key_file(tmp_path):
    """The message says so, before the check of permissions."""
    with pytest.raises(ConfigError, match="is a folder"):
        key_file.read_key_file(tmp_path)


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff", None])
def test_invalid_key_files(tmp_path, content):
    """Empty, two words, not ASCII, missing."""
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)

    with pytest.raises(ConfigError):
        bf.Explorer("https://explorer.example", api_key=key_file.read_key_file(file))


def test_ask_key_needs_a_terminal(run):
    """In a script, the prompt would read other input."""
    result = run(
        "load", "latest-state", "--url", "http://127.0.0.1:9", "--ask-key", served=False, input="k"
    )

    assert 2 == result.exit_code
    assert "--key-file" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--local", "--url", "http://127.0.0.1:9"],
        ["--local", "--offline"],
        ["--store", "x", "--no-store", "--url", "http://127.0.0.1:9"],
        ["--url", "ftp://x"],
        ["--rate", "0", "--url", "http://127.0.0.1:9"],
        ["--chain", "nowhere", "--url", "http://127.0.0.1:9"],
        ["--offline", "--no-store", "--url", "http://127.0.0.1:9"],
        [],
    ],
)
def test_invalid_settings_are_refused_before_a_request(run, options):
    """The error comes before the first request; without any option, the key is missing."""
    result = run("load", "latest-state", *options, served=False)

    assert 2 == result.exit_code
    assert "" == result.stdout
    assert 1 == result.stderr.count("\n")


@pytest.mark.parametrize("environment", [{}, {"BEACONFRAMES_LOCAL": "1"}])
@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--no-store"], 0),
        (["--max-requests", "5"], 0),
        (["--rate", "1000"], 0),
        (["--no-progress"], 0),
        (["--rate", "0"], 2),
        (["--offline"], 2),
    ],
)
def test_options_of_the_local_explorer(run, chain, monkeypatch, environment, options, status):
    """Limits are accepted; options of a remote explorer are refused."""
    monkeypatch.setenv("BEACONFRAMES_SAMPLE", str(chain.path))
    local = [] if environment else ["--local"]

    result = run("load", "epochs", *local, *options, served=False, env=environment)

    assert status == result.exit_code
    if options[0] == "--offline":
        first = "BEACONFRAMES_LOCAL" if environment else "--local"
        assert f"{first} and {options[0]} exclude each other" in result.stderr


def test_a_local_load_is_stored_in_the_folder_that_is_named(run, chain, monkeypatch, tmp_path):
    """The second load of the same rows needs no request: the way of a paid service is tried."""
    monkeypatch.setenv("BEACONFRAMES_SAMPLE", str(chain.path))
    options = ("--validators", "1,2", "--since", "2", "--until", "4", "--json")

    requests = []
    for _ in range(2):
        result = run(
            *("load", "income-history", "--local", "--store", tmp_path, *options), served=False
        )
        assert 0 == result.exit_code, result.stderr
        requests.append(json.loads(result.stdout)["requests"])
        assert 6 == json.loads(result.stdout)["rows"]

    assert requests[0] > 0
    assert 0 == requests[1]


def test_max_requests_of_a_local_load(run, small_sample):
    """--max-requests applies to a local explorer, but not to a dataset, which needs no requests."""
    options = ["--validators", "1-100", "--since", "-300", "--max-requests", "1"]

    result = run("load", "income-history", *options, "--local", served=False)
    from_files = run("load", "income-history", *options)

    assert 0 == from_files.exit_code

    assert (2, "") == (result.exit_code, result.stdout)
    assert "requests" in result.stderr


def test_no_connection_is_exit_code_6(run):
    """Exit code 6."""
    result = run("load", "latest-state", "--url", "http://127.0.0.1:9", served=False)

    assert 6 == result.exit_code


@pytest.mark.more
def test_progress_is_on_standard_error(run, small_sample, monkeypatch):
    """Only with --progress, or on a terminal."""
    monkeypatch.setattr("beaconframes.progress.DELAY", 0)
    monkeypatch.setattr("beaconframes.progress.REFRESH_INTERVAL", 0.005)
    options = ["load", "income-history", "--validators", "1-100", "--since", "-200"]
    silent = run(*options, "--local", served=False)
    shown = run(*options, "--local", "--progress", served=False)

    assert "" == silent.stderr
    assert "income_history: " in shown.stderr
    assert silent.stdout == shown.stdout


def test_the_dictionary_lists_loaders_and_columns(run):
    """All loaders, or the columns of one; the same as JSON; an unknown loader is an error."""
    loaders = run("dictionary", served=False)
    columns = json.loads(run("dictionary", "v2.rewards", "--json", served=False).stdout)["rows"]

    assert "load_income_history" in loaders.stdout
    assert "validator_index" == columns[0]["column"]
    assert 2 == run("dictionary", "incomes", served=False).exit_code
    for loader, lines in (("v2.state", 1), ("v2.slot-deposits", 3)):
        result = run("dictionary", loader, served=False)
        assert (0, lines) == (result.exit_code, result.stdout.count("\n"))
        assert "The columns are not documented" in result.stdout


def test_a_served_address_alone_gives_the_times_of_its_chain(run, running):
    """Z1: --url needs no --chain; dates select the epochs of the served chain."""
    time = running.service.chain.time_of("epoch", 300)
    words = ["--url", running.url, "--validators", "5", "--since", time.date(), "--until", 301]

    result = run("load", "balance-history", *words, "--format", "csv", served=False)

    assert 0 == result.exit_code
    assert time.strftime("%Y-%m-%d") == result.stdout.splitlines()[1].split(",")[2][1:11]


@pytest.mark.more
def test_the_validators_of_an_address_come_from_a_file(run, chain, tmp_path):
    """The error names the command that writes it, and the command writes what is expected."""
    source = ["--dataset", chain.path]
    rows = run("load", "validators", "--validators", "5", "--format", "csv", *source).stdout
    address = "0x" + next(csv.DictReader(io.StringIO(rows)))["withdrawal_credentials"][-40:]
    refused = run("load", "validators", "--validators", address, *source)
    assert 2 == refused.exit_code
    command = refused.stderr.partition(": beaconframes ")[2].split()
    out = tmp_path / command[-1]
    words = [address if word == "ADDRESS" else word for word in command[:-1]]
    assert 0 == run(*words, out, *source).exit_code

    found = run("load", "validators", "--validators", out, "--format", "csv", *source)

    credentials = {
        row["withdrawal_credentials"] for row in csv.DictReader(io.StringIO(found.stdout))
    }
    assert (0, {address[2:]}) == (found.exit_code, {each[-40:] for each in credentials})
