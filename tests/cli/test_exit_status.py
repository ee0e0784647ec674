"""How a command ends: statuses, lines, signals and closed pipes."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from beaconframes import errors
from beaconframes.cache.local_store import LocalStore
from beaconframes.calendar import MAINNET
from beaconframes.cli import commands, everywhere, exits

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "beaconframes"]
# Two seconds where nothing else runs; without an end where the signal was not taken.
AT_MOST = 10

STATUSES = {
    "BeaconframesError": 1,
    "UsageError": 2,
    "ConfigError": 2,
    "RequestLimitExceeded": 2,
    "MissingRows": 3,
    "Unauthorized": 4,
    "TierTooLow": 4,
    "TooManyIdentifiers": 4,
    "RateLimited": 5,
    "QuotaSpent": 5,
    "ConnectionFailed": 6,
    "RequestTimeout": 6,
    "ServerError": 6,
    "ChallengePage": 6,
    "ServiceError": 7,
    "BadRequest": 7,
    "NotFound": 7,
    "NotServed": 7,
    "ResponseError": 8,
    "ProtocolError": 8,
    "SchemaError": 8,
    "PaginationError": 8,
    "IntegrityError": 8,
    "SnapshotMoved": 8,
    "WindowMoved": 8,
    "EndpointDeprecated": 1,
    "DatasetError": 9,
    "StoreUnavailable": 9,
}


@pytest.fixture
def ending(monkeypatch):
    """Run a command that ends as a function says."""

    def run(function, *options):
        command = everywhere(click.Command("ending", callback=function))
        monkeypatch.setattr(type(commands), "get_command", lambda *_: command)
        return CliRunner().invoke(commands, ["ending", *options])

    return run


ERRORS = sorted(
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.BeaconframesError)
)


def raising(error):
    """A function that says something and fails; nothing of it may reach standard output."""

    def fail():
        raise error

    return fail


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_its_status_and_is_one_line(ending, name):
    """One line on standard error, nothing on standard output; the status is that of the class."""
    kind = getattr(errors, name)
    expected = next(STATUSES[k.__name__] for k in kind.__mro__ if k.__name__ in STATUSES)

    told = ending(raising(kind("it\x1b[2J broke\nbadly", hint="Mend it")))

    assert expected == told.exit_code
    assert "" == told.stdout
    assert "beaconframes: it\\x1b[2J broke\\nbadly. Mend it\n" == told.stderr


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("wait=True needs a folder", "--wait needs a folder"),
        ("call it x.csv, or leave format= out", "call it x.csv, or leave --format out"),
        ("format='odt' is not known", "--format 'odt' is not known"),
        ("more than max_requests=5", "more than --max-requests 5"),
        ("a folder, or table=...", "a folder, or --table ..."),
        ("until= and for_= both say", "--until and --for both say"),
        (
            "call bf.connect(api_key=...) or bf.local()",
            "call bf.connect(api_key=...) or bf.local()",
        ),
        ("https://x/?url=1&since=2", "https://x/?url=1&since=2"),
        ("reach=3 and my_name=4", "reach=3 and my_name=4"),
    ],
)
def test_an_error_names_options(ending, python, expected):
    """What has another name in Python is called as it is typed; a call in Python stays one."""
    told = ending(raising(errors.UsageError(python)))

    assert f"beaconframes: {expected}\n" == told.stderr


def test_debug_shows_where(ending):
    """A traceback, and only if it is asked for; in it nothing moves the terminal either."""
    told = ending(raising(errors.NotFound("gone\x1b[2J")), "--debug")

    assert 7 == told.exit_code
    assert "Traceback" in told.stderr
    assert "in fail" in told.stderr
    assert "\x1b" not in told.stderr


def test_a_bug_is_one_line_too(ending):
    """What nobody raised on purpose says its kind, and how to see more."""
    told = ending(raising(ZeroDivisionError("by\nzero")))

    assert 1 == told.exit_code
    assert "beaconframes: ZeroDivisionError: by zero (--debug shows where)\n" == told.stderr


def test_missing_rows_are_no_success(ending):
    """A warning is one line, the rest is written, and the status is not 0."""

    def partly():
        click.echo("rows")
        warnings.warn(errors.MissingRows("epoch 7 is missing"), stacklevel=1)

    told = ending(partly)

    assert 3 == told.exit_code
    assert "rows\n" == told.stdout
    assert "beaconframes: warning: epoch 7 is missing\n" == told.stderr


def test_other_warnings_do_not_spoil_success(ending):
    """They are a line, and the status stays 0."""
    told = ending(lambda: warnings.warn(errors.StoreUnavailable("disk full"), stacklevel=1))

    assert 0 == told.exit_code
    assert "beaconframes: warning: disk full\n" == told.stderr


def test_what_is_logged_is_a_line_too(ending):
    """Like a warning, safe for a terminal, and the status stays 0; not what is one anyhow."""

    def log():
        logging.getLogger("beaconframes.record").warning("again\n%s", "\x1b[2J")
        logging.getLogger("beaconframes.record").info("done")
        LocalStore(Path("there"), url="https://x", chain=MAINNET).distrust(
            errors.DatasetError("full")
        )

    told = ending(log)

    assert 0 == told.exit_code
    assert [
        "beaconframes: warning: again \\x1b[2J",
        "beaconframes: warning: the store is not used: full",
    ] == told.stderr.splitlines()
    assert [] == logging.getLogger("beaconframes").handlers


@pytest.mark.parametrize("words", [[], ["store"], ["wall"], ["load"], ["load", "--v2"], ["plan"]])
def test_without_a_word_it_says_what_there_is(words):
    """The same as --help, on standard error, line by line, none of them cut; status 2."""
    bare = CliRunner().invoke(commands, words)
    asked = CliRunner().invoke(commands, [*words, "--help"])

    assert (2, "", asked.stdout) == (bare.exit_code, bare.stdout, bare.stderr)
    assert "..." not in bare.stderr.replace("[ARGS]...", "")
    assert 5 < len(bare.stderr.splitlines())


def test_the_statuses_are_documented():
    """The page and the help have every status with its meaning."""
    page = (ROOT / "docs" / "command-line.md").read_text()
    told = CliRunner().invoke(commands, ["--help"]).stdout

    for status, names, meaning in exits.table():
        assert re.search(rf"^ *{status}  {re.escape(meaning)}$", told, re.MULTILINE)
        listed = ", ".join(f"`{name}`" for name in names.split(", ") if name)
        assert f"| {status} | {meaning} | {listed} |".replace("|  |", "| |") in page


def test_a_key_is_no_argument():
    """It is refused without being shown, and the line says where a key belongs."""
    for option in ("--api-key", "--key"):
        told = CliRunner().invoke(commands, [f"{option}=sesame"])

        assert 2 == told.exit_code
        assert "sesame" not in told.output
        assert "BEACONFRAMES_API_KEY" in told.stderr


def test_nobody_reads_on():
    """`| head -1`: no traceback, and nothing on standard error."""
    line = f'"{sys.executable}" -m beaconframes --help | head -1; echo ${{PIPESTATUS[0]}}'
    told = subprocess.run(["/bin/bash", "-c", line], check=False, capture_output=True, text=True)

    first, status = told.stdout.splitlines()
    assert first.startswith("Usage: beaconframes")
    assert status in ("0", "141")
    assert "" == told.stderr


def test_nobody_reads_at_all():
    """A pipe that is closed before the first line: its own status, and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    told = subprocess.run(
        [*COMMAND, "--help"], check=False, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)

    assert 141 == told.returncode
    assert "" == told.stderr


def test_a_full_disk_behind_standard_output():
    """An error of one line, and a status that says files."""
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [*COMMAND, "--help"], check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )

    assert 9 == told.returncode
    assert "beaconframes: No space left on device\n" == told.stderr


HANG = """
import threading, click
from beaconframes import cli
def hang():
    {before}
    click.echo("there")
    threading.Event().wait()
command = cli.everywhere(click.Command("hang", callback=hang))
cli.Commands.get_command = lambda *_: command
cli.main()
"""


@pytest.mark.parametrize(
    "before", ["pass", "threading.Thread(target=threading.Event().wait).start()"]
)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_soon(number, status, before):
    """Soon, with one line, even where a thread waits for what never comes."""
    process = subprocess.Popen(
        [sys.executable, "-c", HANG.format(before=before), "hang"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        process.stdout.readline()
        started = time.monotonic()
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        took = time.monotonic() - started
    finally:
        process.kill()

    assert status == process.returncode
    assert took < AT_MOST
    assert "beaconframes: stopped\n" == said


GENTLE = """
import threading, time, click
from beaconframes import cli
from beaconframes.cli import signals
def hang():
    with signals.gently() as came:
        try:
            click.echo("there")
            threading.Event().wait()
        except KeyboardInterrupt:
            click.echo("asked")
            time.sleep({seconds})
    click.echo("report")
    time.sleep(0.2)
    raise signals.Stopped(128 + came[0])
command = cli.everywhere(click.Command("hang", callback=hang))
cli.Commands.get_command = lambda *_: command
cli.main()
"""


@pytest.mark.parametrize(
    ("seconds", "between", "printed"), [(0, 0, "report\n"), (0.3, 0.05, "report\n"), (60, 1, "")]
)
def test_a_signal_that_is_told_twice(seconds, between, printed):
    """As timeout does, to a process and to its group: it is one; later it is another one."""
    process = subprocess.Popen(
        [sys.executable, "-c", GENTLE.format(seconds=seconds), "hang"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.readline()
        time.sleep(between)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        told, said = process.communicate(timeout=60)
        took = time.monotonic() - started
    finally:
        process.kill()

    assert (143, printed) == (process.returncode, told)
    assert took < AT_MOST
    assert "beaconframes: stopped\n" == said


@pytest.mark.long
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("out", [[], ["--out", "state.parquet"], ["--progress"]])
def test_signals_end_a_load_that_nobody_answers(tmp_path, number, status, out):
    """While it waits for the first answer; no file is left, whole or half."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [*COMMAND, "load", "latest-state", "--url", url, *out],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        )  # fmt: skip
        try:
            silent.settimeout(60)
            asked, _ = silent.accept()
            time.sleep(0.3)
            started = time.monotonic()
            process.send_signal(number)
            printed, said = process.communicate(timeout=60)
            took = time.monotonic() - started
            asked.close()
        finally:
            process.kill()

    assert (status, "") == (process.returncode, printed)
    assert took < AT_MOST
    assert said.endswith("beaconframes: stopped\n")
    assert 1 == said.count("beaconframes: ")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.more
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_an_export_that_goes_on_later(tmp_path, chain, number, status):
    """Soon, saying what to do; the same command ends it, the same to the byte."""
    words = ["export", "income-history", "--validators", "0-49", "--since", "0", "--until", "449"]
    command = [*COMMAND, *words, "--dataset", str(chain.path)]
    whole = subprocess.run([*command, "--out", "whole"], check=False, cwd=tmp_path)
    assert 0 == whole.returncode
    process = subprocess.Popen(
        [*command, "--out", "out"], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    while not (tmp_path / "out" / ".beaconframes" / "journal.jsonl").exists():
        time.sleep(0.001)
        assert process.poll() is None
    started = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    took = time.monotonic() - started

    assert status == process.returncode
    assert took < AT_MOST
    assert "beaconframes: stopped; the same command goes on where it was\n" == said
    assert not (tmp_path / "out" / "manifest.json").exists()
    again = subprocess.run([*command, "--out", "out"], check=False, cwd=tmp_path)
    assert 0 == again.returncode
    one, other = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "history.jsonl"
        }
        for folder in (tmp_path / "whole", tmp_path / "out")
    )
    assert one == other


def test_startup_is_quick():
    """The help loads nothing that is heavy."""
    program = (
        "import sys\nfrom beaconframes.cli import commands\n"
        "try: commands.main(['--help'])\n"
        "except SystemExit: print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    loaded = set(re.findall(r"'(\w+)'", told.stdout.splitlines()[-1]))
    assert "click" in loaded
    assert set() == loaded & {"polars", "httpx", "numpy", "matplotlib", "uvicorn", "pyarrow"}
