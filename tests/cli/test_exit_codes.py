"""Exit codes, messages, signals and closed pipes."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from beaconframes import errors
from beaconframes.cache.local_store import LocalStore
from beaconframes.calendar import MAINNET
from beaconframes.cli import commands, exit_codes
from beaconframes.cli.common_options import add_common_options
from beaconframes.v1.income_history import IncomeHistory

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "beaconframes"]
# Two seconds on an idle machine; without the signal handlers the command would not end.
AT_MOST = 50

EXIT_CODES = {
    "BeaconframesError": 1,
    "UsageError": 2,
    "ConfigError": 2,
    "RequestLimitExceeded": 2,
    "MissingRows": 3,
    "UnreconciledRows": 3,
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
def run_ending(monkeypatch):
    """Run a command that calls a function."""

    def run(function, *options):
        parameters = [
            click.Option([f"--{name}"], expose_value=False)
            for name in ("wait", "format", "max-requests", "table", "since", "until", "key-file")
        ]
        parameters += [click.Option([f"--{n}"], expose_value=False) for n in ("figsize", "region")]
        parameters.append(click.Option(["--for", "for_"], expose_value=False))
        command = click.Command("ending", params=parameters, callback=function)
        add_common_options(command)
        monkeypatch.setattr(type(commands), "get_command", lambda *_: command)
        return CliRunner().invoke(commands, ["ending", *options])

    return run


ERRORS = sorted(
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.BeaconframesError)
)


def raise_error(error):
    """Return a function that raises *error*."""

    def fail():
        raise error

    return fail


@pytest.mark.parametrize("name", ERRORS)
def test_exit_code_of_every_error(run_ending, name):
    """C01: one line on standard error, nothing on standard output, the exit code of the class."""
    kind = getattr(errors, name)
    expected = next(EXIT_CODES[k.__name__] for k in kind.__mro__ if k.__name__ in EXIT_CODES)

    result = run_ending(raise_error(kind("it\x1b[2J broke\nbadly", hint="Repair it")))

    assert expected == result.exit_code
    assert "" == result.stdout
    assert "beaconframes: it\\x1b[2J broke\\nbadly. Repair it\n" == result.stderr


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("wait=True needs a folder", "--wait needs a folder"),
        ("call it x.csv, or leave format= out", "call it x.csv, or leave --format out"),
        ("format='odt' is not valid", "--format 'odt' is not valid"),
        ("more than max_requests=5", "more than --max-requests 5"),
        ("a folder, or table=...", "a folder, or --table ..."),
        ("until= and for_= both say", "--until and --for both say"),
        ("api_key is not valid, api_key=x", "api_key is not valid, --key-file x"),
        (
            "since (1d, epoch 7) is after until (2d, epoch 5)",
            "--since (1d, epoch 7) is after --until (2d, epoch 5)",
        ),
        ("strict=True is no option here", "strict=True is no option here"),
        ("give format=. Or wait=, too", "give --format. Or --wait, too"),
        ("Explorer('x', format='csv') is closed", "Explorer('x', format='csv') is closed"),
        ("figsize=(1e3, 1000.0): figsize=(7.6, 4.2).", "--figsize 1e3 1000: --figsize 7.6 4.2."),
        ("Write region=(left, top), from 0", "Write --region left,top, from 0"),
        ("region=(5, 10, 1, 1) is", "--region 5,10,1,1 is"),
        ("wait is 'abc'; it must be true", "--wait is 'abc'; it must be true"),
        ("wait is 'abc'", "wait is 'abc'"),
        ("gaps. bf.missing() lists them", "gaps. --json lists them"),
        (
            "call bf.connect(api_key=...) or bf.local()",
            "call bf.connect(api_key=...) or bf.local()",
        ),
        ("https://x/?url=1&since=2", "https://x/?url=1&since=2"),
        ("reach=3 and my_name=4", "reach=3 and my_name=4"),
    ],
)
def test_messages_name_options(run_ending, python, expected):
    """Arguments of Python become options of the command; a Python call stays unchanged."""
    result = run_ending(raise_error(errors.UsageError(python)))

    assert f"beaconframes: {expected}\n" == result.stderr


def test_debug_prints_a_traceback(run_ending):
    """The traceback has no control characters."""
    result = run_ending(raise_error(errors.NotFound("gone\x1b[2J")), "--debug")

    assert 7 == result.exit_code
    assert "Traceback" in result.stderr
    assert "in fail" in result.stderr
    assert "\x1b" not in result.stderr


def test_an_unexpected_error_is_one_line(run_ending):
    """The line has the class of the error, and how to print a traceback."""
    result = run_ending(raise_error(ZeroDivisionError("by\nzero")))

    assert 1 == result.exit_code
    assert (
        "beaconframes: ZeroDivisionError: by zero (add --debug for a traceback)\n" == result.stderr
    )


def test_missing_rows_have_an_exit_code(run_ending):
    """The warning is one line, all other rows are written, and the exit code is 3."""

    def partly():
        click.echo("rows")
        warnings.warn(errors.MissingRows("epoch 7 is missing"), stacklevel=1)

    result = run_ending(partly)

    assert 3 == result.exit_code
    assert "rows\n" == result.stdout
    assert "beaconframes: warning: epoch 7 is missing\n" == result.stderr


def test_other_warnings_have_exit_code_0(run_ending):
    """The warning is one line."""
    result = run_ending(lambda: warnings.warn(errors.StoreUnavailable("disk full"), stacklevel=1))

    assert 0 == result.exit_code
    assert "beaconframes: warning: disk full\n" == result.stderr


def test_logged_warnings_are_printed(run_ending):
    """One escaped line each, exit code 0; a warning of the store is printed once."""

    def log():
        logging.getLogger("beaconframes.record").warning("again\n%s", "\x1b[2J")
        logging.getLogger("beaconframes.record").info("done")
        store = LocalStore(Path("there"), url="https://x", chain=MAINNET)
        store.warn_unusable(errors.DatasetError("full"))
        store.warn_unusable(errors.DatasetError("full"))

    result = run_ending(log)

    assert 0 == result.exit_code
    assert [
        "beaconframes: warning: again \\x1b[2J",
        "beaconframes: warning: the store is not used: full",
    ] == result.stderr.splitlines()
    assert [] == logging.getLogger("beaconframes").handlers


@pytest.mark.parametrize("words", [[], ["store"], ["wall"], ["load"], ["load", "--v2"], ["plan"]])
def test_help_without_arguments(words):
    """The text of --help on standard error, with no line cut; exit code 2."""
    without = CliRunner().invoke(commands, words)
    helped = CliRunner().invoke(commands, [*words, "--help"])

    assert (2, "", helped.stdout) == (without.exit_code, without.stdout, without.stderr)
    assert "..." not in without.stderr.replace("[ARGS]...", "")
    assert 5 < len(without.stderr.splitlines())


def test_the_exit_codes_are_documented():
    """The page and the help text have every exit code with its meaning."""
    page = (ROOT / "docs" / "command-line.md").read_text()
    result = CliRunner().invoke(commands, ["--help"]).stdout

    for status, classes, meaning in exit_codes.EXIT_CODES:
        assert re.search(rf"^ *{status}  {re.escape(meaning)}$", result, re.MULTILINE)
        listed = ", ".join(f"`{each.__name__}`" for each in classes)
        assert f"| {status} | {meaning} | {listed} |" in page


def test_a_key_as_an_option_is_refused():
    """C05: the message does not contain the key, and names the ways to give one."""
    for option in ("--api-key", "--key"):
        result = CliRunner().invoke(commands, [f"{option}=sesame"])

        assert 2 == result.exit_code
        assert "sesame" not in result.output
        assert "BEACONFRAMES_API_KEY" in result.stderr


def test_output_closed_after_one_line():
    """C02: `| head -1`: no traceback, nothing on standard error."""
    line = f'"{sys.executable}" -m beaconframes --help | head -1; echo ${{PIPESTATUS[0]}}'
    result = subprocess.run(["/bin/bash", "-c", line], check=False, capture_output=True, text=True)

    first, status = result.stdout.splitlines()
    assert first.startswith("Usage: beaconframes")
    assert status in ("0", "141")
    assert "" == result.stderr


def test_output_closed_before_the_first_line():
    """C02: exit code 141, nothing on standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [*COMMAND, "--help"], check=False, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)

    assert 141 == result.returncode
    assert "" == result.stderr


def test_standard_output_on_a_full_disk():
    """C02: an error of one line, exit code 9."""
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*COMMAND, "--help"], check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )

    assert 9 == result.returncode
    assert "beaconframes: No space left on device\n" == result.stderr


HANG = """
import threading, click
from beaconframes import cli
from beaconframes.cli.common_options import add_common_options
def hang():
    {before}
    click.echo("started")
    threading.Event().wait()
command = add_common_options(click.Command("hang", callback=hang))
cli.CommandGroup.get_command = lambda *_: command
cli.main()
"""


@pytest.mark.parametrize(
    "before", ["pass", "threading.Thread(target=threading.Event().wait).start()"]
)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_command(number, status, before):
    """K04: within seconds and with one line, even if another thread never ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HANG.format(before=before), "hang"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        process.stdout.readline()
        started = time.monotonic()
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
        took = time.monotonic() - started
    finally:
        process.kill()

    assert status == process.returncode
    assert took < AT_MOST
    assert "beaconframes: stopped\n" == stderr


INTERRUPTED = """
import threading, time, click
from beaconframes import cli
from beaconframes.cli import signals
from beaconframes.cli.common_options import add_common_options
signals.REPEAT_SECONDS = {repeat_seconds}
def hang():
    signals.prepare_stop(has_report=True)
    try:
        click.echo("started")
        threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("interrupted")
        time.sleep({seconds})
    click.echo("report")
    time.sleep(0.2)
    raise KeyboardInterrupt
command = add_common_options(click.Command("hang", callback=hang))
cli.CommandGroup.get_command = lambda *_: command
cli.main()
"""


@pytest.mark.parametrize(
    ("seconds", "repeat_seconds", "printed"),
    [(0, 60, "report\n"), (0.3, 60, "report\n"), (60, 0, "")],
)
def test_a_repeated_signal(seconds, repeat_seconds, printed):
    """`timeout` signals a process and its group: both count as one; a later signal counts again.

    How much later is longer or shorter here than 0.5 s, because the machine may be busy.
    """
    code = INTERRUPTED.format(seconds=seconds, repeat_seconds=repeat_seconds)
    process = subprocess.Popen(
        [sys.executable, "-c", code, "hang"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.readline()
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        # Not communicate(): it would lose what readline() has already buffered.
        killer = threading.Timer(60, process.kill)
        killer.start()
        stdout, stderr = process.stdout.read(), process.stderr.read()
        process.wait()
        took = time.monotonic() - started
        killer.cancel()
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()
        process.wait()

    assert (143, printed) == (process.returncode, stdout)
    assert took < AT_MOST
    assert "beaconframes: stopped\n" == stderr


@pytest.mark.long
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("out", [[], ["--out", "state.parquet"], ["--progress"]])
def test_signals_end_a_load_without_a_response(tmp_path, number, status, out):
    """While the load waits for the first response; no file is written."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [*COMMAND, "load", "latest-state", "--url", url, *out],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        )  # fmt: skip
        try:
            silent.settimeout(60)
            connection, _ = silent.accept()
            time.sleep(0.3)
            started = time.monotonic()
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=60)
            took = time.monotonic() - started
            connection.close()
        finally:
            process.kill()

    assert (status, "") == (process.returncode, stdout)
    assert took < AT_MOST
    assert stderr.endswith("beaconframes: stopped\n")
    assert 1 == stderr.count("beaconframes: ")
    assert [] == list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def whole(running, tmp_path_factory):
    """A command that exports, without its target, and the folder of an undisturbed export."""
    words = ["export", "income-history", "--validators", "0-19", "--since", "0", "--until", "449"]
    command = [*COMMAND, *words, "--url", running.url]
    folder = tmp_path_factory.mktemp("export")
    subprocess.run([*command, "--out", "whole"], check=True, cwd=folder)
    return command, folder / "whole"


@pytest.mark.more
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_an_export_that_can_be_resumed(
    tmp_path, whole, running, monkeypatch, number, status
):
    """K04: the message says how to resume; the resumed export has the same bytes."""
    command, undisturbed = whole
    answer, stopped, held = running.service.answer, threading.Event(), []

    def answer_later(endpoint, *arguments, **options):
        """Send no rows before the command has ended."""
        if endpoint.table is IncomeHistory:
            held.append(endpoint)
            stopped.wait(60)
        return answer(endpoint, *arguments, **options)

    monkeypatch.setattr(running.service, "answer", answer_later)
    process = subprocess.Popen(
        [*command, "--out", "out"], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    while not held:
        time.sleep(0.01)
        assert process.poll() is None
    assert (tmp_path / "out" / ".beaconframes" / "lock").exists()
    started = time.monotonic()
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    took = time.monotonic() - started
    stopped.set()

    assert status == process.returncode
    assert took < AT_MOST
    assert "beaconframes: stopped; run the same command again to resume it\n" == stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
    again = subprocess.run([*command, "--out", "out"], check=False, cwd=tmp_path)
    assert 0 == again.returncode
    one, other = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "history.jsonl"
        }
        for folder in (undisturbed, tmp_path / "out")
    )
    assert one == other


def test_help_imports_no_heavy_library():
    """The help text needs none of them."""
    program = (
        "import sys\nfrom beaconframes.cli import commands\n"
        "try: commands.main(['--help'])\n"
        "except SystemExit: print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    loaded = set(re.findall(r"'(\w+)'", result.stdout.splitlines()[-1]))
    assert "click" in loaded
    assert set() == loaded & {"polars", "httpx", "numpy", "matplotlib", "uvicorn", "pyarrow"}
