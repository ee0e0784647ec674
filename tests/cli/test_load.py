"""`beaconframes load`: every loader as a command."""

from __future__ import annotations

import io
import json
import re
import stat
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime

import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.cli import asking, commands, nouns, showing, subjects
from beaconframes.endpoint.identifiers import identifier
from beaconframes.errors import ConfigError, UsageError
from beaconframes.server import Server

from ..support.untrusted_texts import TEXTS

UNASKED = ["--url", "http://127.0.0.1:9"]
"""Where nobody answers, which has a status of its own."""
LIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def run(chain):
    """Run a command against a local explorer of the small chain."""

    def invoke(*arguments, served=True, **more):
        place = ["--dataset", str(chain.path)] if served else []
        return CliRunner().invoke(commands, [*map(str, arguments), *place], **more)

    return invoke


@pytest.fixture
def income(chain):
    """The income of validators 1 to 3 in the last two finalized epochs, as it is at rest."""
    last = chain.meta["finalized_epoch"]
    return (
        chain.scan("income_history")
        .filter(pl.col("validator_index").is_in([1, 2, 3]), pl.col("epoch") >= last - 1)
        .sort("validator_index", "epoch")
        .collect()
    )


def test_every_loader_has_a_command_with_its_arguments():
    """Both generations; each argument is an option of a kind that is known."""
    for generation, home in ((1, bf), (2, bf.v2)):
        names = [name for name in dir(home) if name.startswith("load_")]
        assert names == sorted(f"load_{n.replace('-', '_')}" for n in nouns.nouns(generation))
        for noun in nouns.nouns(generation):
            loader = nouns.loader_of(noun, generation)
            options = nouns.options(loader)
            assert list(nouns.arguments(loader)) == [option.name for option in options]
            assert nouns.summary(loader)


def test_a_table_for_people(run, income):
    """The first rows as wide as the terminal, and how much more there is."""
    told = run("load", "income-history", "--validators", "1,2,3", "--since", "-2", "--rows", "4")

    lines = told.stdout.splitlines()
    assert 0 == told.exit_code
    assert "" == told.stderr
    assert ["validator_index", "epoch", "time"] == lines[0].split()[:3]
    first = income.row(0, named=True)
    assert [str(first["validator_index"]), str(first["epoch"])] == lines[1].split()[:2]
    assert "... 2 more rows" == lines[5]
    assert re.fullmatch(r"\.\.\. \d+ more columns: .*tx_fee_reward_wei", lines[6])
    assert all(len(line) <= 100 for line in lines[:5])


def test_json_for_machines(run, income):
    """One object: complete or not, how many requests, and the rows, exactly."""
    told = run("load", "income-history", "--validators", "1-3", "--since", "-2", "--json")

    said = json.loads(told.stdout)
    assert 0 == told.exit_code
    assert (True, 6, "load_income_history", [], []) == (
        said["complete"], said["rows"], said["loader"], said["missing"], said["warnings"],
    )  # fmt: skip
    assert said["requests"] > 0
    first, expected = said["data"][0], income.row(0, named=True)
    assert expected["attestation_head_reward_gwei"] == first["attestation_head_reward_gwei"]
    assert str(expected["tx_fee_reward_wei"]) == first["tx_fee_reward_wei"]
    assert datetime.fromisoformat(first["time"]).tzinfo == UTC


@pytest.mark.parametrize(
    ("ending", "read"),
    [
        ("parquet", pl.read_parquet),
        ("arrow", pl.read_ipc),
        ("csv", pl.read_csv),
        ("jsonl", pl.read_ndjson),
    ],
)
def test_a_file_by_its_ending(run, income, tmp_path, ending, read):
    """All rows, whatever the format."""
    out = tmp_path / f"income.{ending}"

    told = run("load", "income-history", "--validators", "1..3", "--since", "-2", "--out", out)

    assert 0 == told.exit_code
    assert f"{out}: 6 rows, {out.stat().st_size:,} bytes\n" == told.stdout
    found = read(out)
    assert income.columns == [c for c in found.columns if c in income.columns]
    assert_frame_equal(
        income.select("validator_index", "epoch", "attestation_head_reward_gwei"),
        found.select("validator_index", "epoch", "attestation_head_reward_gwei"),
    )


def test_a_file_is_replaced_only_on_demand(run, tmp_path):
    """Refused before anything is sent; with --overwrite it is replaced, and nothing is left."""
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


def test_an_export_that_fails_leaves_the_old_file(run, tmp_path, monkeypatch):
    """A disk that is full at the end: an error, and what was there is as it was."""
    out = tmp_path / "state.parquet"
    out.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    told = run("load", "latest-state", "--out", out, "--overwrite")

    assert 9 == told.exit_code
    assert "No space left on device" in told.stderr
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
    """Until the new one has its name the old one is whole; the next call replaces it."""
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


def test_where_nothing_can_be_written(run, tmp_path):
    """A folder that is not there, a folder itself, a format that nobody knows."""
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
        told = run("load", "latest-state", *options, *UNASKED, served=False)

        assert 2 == told.exit_code
        assert "" == told.stdout
        assert 1 == told.stderr.count("\n")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["y.json", "x.csv.gz", "old.txt", "rows", ".csv.d"])
@pytest.mark.parametrize("more", [[], ["--format", "csv"], ["--overwrite"]])
def test_a_name_that_tells_no_format(run, tmp_path, name, more):
    """It is refused before anything is sent; what is there stays."""
    there = tmp_path / "old.txt"
    there.write_text("old")

    told = run("load", "epochs", "--out", tmp_path / name, *more, *UNASKED, served=False)

    assert (2, "") == (told.exit_code, told.stdout)
    assert f"{name} has no ending that tells its format" in told.stderr
    assert ".parquet, .csv" in told.stderr
    assert ("old", [there]) == (there.read_text(), list(tmp_path.iterdir()))


@pytest.mark.parametrize(
    "options",
    [
        ["--columns", "epoch,epochs"],
        ["--columns", "attestation_head_reward_eth"],
        ["--columns", "attestation_head_reward_gwei", "--unit", "eth"],
    ],
)
def test_a_column_that_is_not_there(run, options):
    """It is refused before anything is sent, with those that there are, in the unit asked for."""
    told = run("load", "income-history", "--validators", "1", *options, *UNASKED, served=False)

    assert (2, "") == (told.exit_code, told.stdout)
    assert "--columns: there is no column" in told.stderr
    assert ("tx_fee_reward_eth" if "--unit" in options else "tx_fee_reward_wei") in told.stderr


def test_columns_that_nobody_published(run):
    """Only the answer tells them, so that it is asked for."""
    told = run("load", "v2.state", "--columns", "what", *UNASKED, served=False)

    assert 6 == told.exit_code


def test_rows_on_standard_output(run, income):
    """With --format and no file: every row, as the file would have it."""
    options = ["--validators", "1,2,3", "--since", "-2", "--columns", "epoch,validator_index"]
    told = run("load", "income-history", *options, "--format", "csv")

    rows = pl.read_csv(io.StringIO(told.stdout))
    assert_frame_equal(income.select("epoch", "validator_index"), rows)


def test_amounts_in_eth(run, income):
    """Exactly: every digit of gwei and wei."""
    told = run(
        "load", "income-history", "--validators", "1-3", "--since", "-2", "--unit", "eth", "--json"
    )

    row = json.loads(told.stdout)["data"][0]
    gwei = income["attestation_head_reward_gwei"][0]
    assert not any(name.endswith(("_gwei", "_wei")) for name in row)
    assert f"0.{gwei:09}000000000" == row["attestation_head_reward_eth"]


def test_a_part_is_no_success(run):
    """What came is given; the status says that it is not all, and JSON what is missing."""
    table = run("load", "validators", "--validators", "1,5000")
    told = run("load", "validators", "--validators", "1,5000", "--json")
    strict = run("load", "validators", "--validators", "1,5000", "--strict")

    assert [3, 3, 3] == [table.exit_code, told.exit_code, strict.exit_code]
    assert 2 == len(table.stdout.splitlines()[:2])
    assert "warning" in table.stderr
    said = json.loads(told.stdout)
    assert (False, 1) == (said["complete"], said["rows"])
    assert [5000] == [missing["validator_index"] for missing in said["missing"]]
    assert "" == strict.stdout


def test_generation_2(run):
    """By --v2 before or behind the noun, or by v2. in front of it; sets by their names."""
    told = [
        run("load", "rewards", "--v2", "--validators", "dashboard:1/2", "--json"),
        run("load", "--v2", "rewards", "--validators", "dashboard:1/2", "--json"),
        run("load", "v2.rewards", "--validators", "dashboard:1/2", "--json"),
    ]

    assert [0, 0, 0] == [one.exit_code for one in told]
    first = json.loads(told[0].stdout)
    assert [2, 6, 10] == [row["validator_index"] for row in first["data"]][:3]
    assert first["data"] == json.loads(told[1].stdout)["data"]
    assert first["data"] == json.loads(told[2].stdout)["data"]
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
def test_validators_of_generation_2(texts, expected):
    """Each way to name them that Python has."""
    assert expected == nouns.KINDS["Validators"].value("--validators", texts)


@pytest.mark.parametrize(
    "texts",
    [["dashboard:x"], ["dashboard:1", "2"], ["owner:a", "owner:b"], ["sub-entity:a"], ["entity:"]],
)
def test_sets_that_make_no_sense(texts):
    """They are refused before anything is sent."""
    with pytest.raises(UsageError):
        nouns.KINDS["Validators"].value("--validators", texts)


def test_a_part_of_the_wall(run):
    """A region is four numbers, and a switch is a switch."""
    told = run(
        "load", "graffiti-wall", "--region", "0,0,99,99", "--since", "0", "--summarize", "--json"
    )

    rows = json.loads(told.stdout)["data"]
    assert 0 == told.exit_code
    assert all(row["x"] <= 99 and row["y"] <= 99 for row in rows)
    assert 2 == run("load", "graffiti-wall", "--region", "0,0,99").exit_code


def test_a_chart_is_a_picture(run, tmp_path):
    """It needs a file to be written to."""
    out = tmp_path / "chart.png"

    for more in ([], ["--out", tmp_path / "chart.jpg"], ["--out", out, "--unit", "eth"]):
        assert 2 == run("load", "chart", "--name", "balance", *more, *UNASKED).exit_code
    told = run("load", "chart", "--name", "validators", "--out", out, "--json")
    said = json.loads(told.stdout)
    assert (0, True, str(out)) == (told.exit_code, said["complete"], said["file"])
    assert out.stat().st_size == said["bytes"]
    assert b"\x89PNG" == out.read_bytes()[:4]


STDIN = b"\xef\xbb\xbf# mine\r\n1, 2 # two\r\n\r\n3\r\n2\r\n"


def test_validators_from_standard_input(run):
    """With a byte order mark, Windows line ends, comments and empty lines."""
    told = run("load", "validators", "--validators", "-", "--json", input=STDIN)

    assert 0 == told.exit_code
    assert [1, 2, 3] == [row["validator_index"] for row in json.loads(told.stdout)["data"]]


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"1\n2\nthree\n4\n", "line 3 "),
        (b"1\n\xff\xfe\n", "line 2 "),
        (b"# none\n\n", "names nothing"),
        (b"1\n" * 4999 + b"0x12\n", "line 5,000 "),
        (b"1\n9-2\n", "line 2 "),
        (b"\x1b[2J\n", "line 1 "),
    ],
)
def test_a_bad_line_is_told_by_its_number(run, raw, line):
    """Before anything is sent; what it says moves no terminal."""
    told = run("load", "validators", "--validators", "-", input=raw)

    assert 2 == told.exit_code
    assert line in told.stderr
    assert "\x1b" not in told.stderr
    assert "" == told.stdout


@pytest.mark.long
def test_a_million_lines(monkeypatch):
    """They stream, and all of them arrive."""
    lines = io.TextIOWrapper(io.BytesIO(b"".join(b"%d\r\n" % n for n in range(1_000_000))))
    monkeypatch.setattr("sys.stdin", lines)

    assert list(range(1_000_000)) == subjects.read("--validators", ["-"], identifier)


@pytest.mark.long
def test_the_last_of_a_million_lines(monkeypatch):
    """A line that makes no sense is told by its number, also after many with comments."""
    good = (b"%d # of mine\r\n" % n if n % 2 else b"\r\n" for n in range(999_999))
    lines = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + b"".join(good) + b"nonsense\r\n"))
    monkeypatch.setattr("sys.stdin", lines)

    with pytest.raises(UsageError, match="line 1,000,000 of standard input"):
        subjects.read("--validators", ["-"], identifier)


def test_ranges_do_not_fill_the_memory():
    """A mistyped range is refused."""
    with pytest.raises(UsageError):
        subjects.read("--slots", ["1-99999999999"], subjects.a_number)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_moves_the_terminal(text):
    """In a table and in JSON: one row stays one row, and JSON gives the text back as it is."""
    frame = pl.DataFrame({"slot": [1], "graffiti": [text], text[:20]: ["x"]})

    table = list(showing.lines(frame, 10, 100))

    assert not LIVE.search("\n".join(table).replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert not any("\n" in line for line in table)
    said = showing.as_json(frame.to_dicts())
    assert not LIVE.search(said)
    assert not re.search(r"[^\x20-\x7e]", said)
    assert text == json.loads(said)[0]["graffiti"]


def test_wide_letters_keep_columns_straight():
    """A letter of two places counts two, and an accent none."""
    frame = pl.DataFrame({"name": ["漢字", "abcd", "e\u0301fgh"], "n": [1, 2, 3]})

    table = list(showing.lines(frame, 10, 100))

    assert [4 + 2, 4 + 2, 4 + 2] == [
        showing.wide(line[: line.rindex(" ") + 1]) for line in table[1:]
    ]


def test_colour_only_where_a_terminal_is(run, monkeypatch):
    """Not into a pipe; and --no-color switches it off where it would be."""
    plain = run("load", "latest-state")
    shown = run("load", "latest-state", color=True)
    off = run("load", "latest-state", "--no-color", color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    never = run("load", "latest-state", color=True)

    assert "\x1b[1m" not in plain.stdout
    assert "\x1b[1m" in shown.stdout
    assert "\x1b[1m" not in off.stdout + never.stdout


def test_the_key_comes_from_a_file(chain, tmp_path, monkeypatch):
    """It is sent, and is nowhere in what is said; a file that others can read is refused."""
    file = tmp_path / "key"
    file.write_text("sesame\n")
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with Server(chain, keys=["sesame"]) as server:
        options = ["load", "latest-state", "--url", server.url, "--json"]
        without = CliRunner().invoke(commands, options)
        told = CliRunner().invoke(commands, [*options, "--key-file", str(file)])
        monkeypatch.setenv("BEACONFRAMES_URL", server.url)
        monkeypatch.setenv("BEACONFRAMES_API_KEY", "sesame")
        environment = CliRunner().invoke(commands, ["load", "latest-state", "--json"])
    file.chmod(0o640)
    open_to_others = CliRunner().invoke(commands, [*options, "--key-file", str(file)])

    assert [4, 0, 0, 2] == [
        without.exit_code, told.exit_code, environment.exit_code, open_to_others.exit_code,
    ]  # fmt: skip
    assert "chmod 600" in open_to_others.stderr
    assert not any("sesame" in t.output for t in (without, told, environment, open_to_others))


def test_a_key_is_in_no_folder(tmp_path):
    """It is told as one, before its permissions are."""
    with pytest.raises(ConfigError, match="is a folder"):
        asking.key_in(tmp_path)


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff", None])
def test_files_without_a_key(tmp_path, content):
    """Empty, more than a word, no text, not there."""
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)

    with pytest.raises(ConfigError):
        bf.Explorer("https://explorer.example", api_key=asking.key_in(file))


def test_a_key_is_asked_for_on_a_terminal_only(run):
    """Not in a script, where it would be read from somewhere else."""
    told = run(
        "load", "latest-state", "--url", "http://127.0.0.1:9", "--ask-key", served=False, input="k"
    )

    assert 2 == told.exit_code
    assert "--key-file" in told.stderr


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
def test_settings_that_cannot_work(run, options):
    """They are told before anything is sent; without any, there is no key."""
    told = run("load", "latest-state", *options, served=False)

    assert 2 == told.exit_code
    assert "" == told.stdout
    assert 1 == told.stderr.count("\n")


@pytest.mark.parametrize("environment", [{}, {"BEACONFRAMES_LOCAL": "1"}])
@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--no-store"], 0),
        (["--max-requests", "5"], 0),
        (["--rate", "1000"], 0),
        (["--no-progress"], 0),
        (["--rate", "0"], 2),
        (["--store", "x"], 2),
        (["--offline"], 2),
    ],
)
def test_how_to_ask_does_not_change_who_is_asked(
    run, chain, monkeypatch, environment, options, status
):
    """The local explorer, for without a key nobody else answers; what it cannot take is refused."""
    monkeypatch.setattr("beaconframes.cli.asking.kept_sample", lambda: nullcontext(chain))
    local = [] if environment else ["--local"]

    told = run("load", "epochs", *local, *options, served=False, env=environment)

    assert status == told.exit_code
    if options[0] in ("--store", "--offline"):
        first = "BEACONFRAMES_LOCAL" if environment else "--local"
        assert f"{first} and {options[0]} do not go together" in told.stderr


def test_a_local_load_that_costs_too_much(run):
    """--max-requests counts there as well."""
    options = ["--validators", "1-100", "--since", "-300", "--max-requests", "1"]

    told = run("load", "income-history", *options)

    assert (2, "") == (told.exit_code, told.stdout)
    assert "requests" in told.stderr


def test_nobody_answers(run):
    """A status of its own, soon."""
    told = run("load", "latest-state", "--url", "http://127.0.0.1:9", served=False)

    assert 6 == told.exit_code


def test_progress_is_on_standard_error(run, monkeypatch):
    """And only where it is asked for, or somebody watches."""
    monkeypatch.setattr("beaconframes.fetch.progress.DELAY", 0)
    monkeypatch.setattr("beaconframes.fetch.progress.OFTEN", 0.005)
    options = ["load", "income-history", "--validators", "1-100", "--since", "-200"]
    silent = run(*options)
    shown = run(*options, "--progress")

    assert "" == silent.stderr
    assert "income_history: " in shown.stderr
    assert silent.stdout == shown.stdout


def test_the_dictionary(run):
    """All loaders, or the columns of one; the same as JSON; an unknown one is told."""
    loaders = run("dictionary", served=False)
    columns = json.loads(run("dictionary", "v2.rewards", "--json", served=False).stdout)["rows"]

    assert "load_income_history" in loaders.stdout
    assert "validator_index" == columns[0]["column"]
    assert 2 == run("dictionary", "incomes", served=False).exit_code
    for loader, lines in (("v2.state", 1), ("v2.slot-deposits", 3)):
        told = run("dictionary", loader, served=False)
        assert (0, lines) == (told.exit_code, told.stdout.count("\n"))
        assert "Columns are not published" in told.stdout
