"""The command line with random input and in unusual environments."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from beaconframes.cli import COMMANDS, commands

from ..support.untrusted_texts import TEXTS

README = Path(__file__).resolve().parents[2] / "README.md"
FILES_OF_THE_README = {
    *("income.parquet", "income.png", "days.csv", "validators.html", "wall.png", "income")
}

ODD = [
    "", "-", "--", "---", "-1", "0", "1", "1,2,3", "1-5", "5-1", "1..3", "99999999999999999999",
    "latest", "2026-10-01", "2026-13-01", "30d", "1e5", "nan", "-inf", "0x", "0x" + "a" * 96,
    "dashboard:1", "owner:", "eth", "csv", "parquet", "/", ".", "..", "~", "*", "%s", "{}", "$HOME",
    "a=b", "=", "http://127.0.0.1:9", "http://127.0.0.1:9/x", "https://[::1",
    "\\", "'", '"', "\n", "\t", "é", "漢字", "🚀", "\udcff", "\x00"[:0], "x" * 5000,
    *(text for text in TEXTS if "\0" not in text and len(text) < 500),
]  # fmt: skip


def option_names(command):
    """The options of a command."""
    return [
        word
        for parameter in command.params
        for word in (*parameter.opts, *parameter.secondary_opts)
    ]


def random_line(chance):
    """A random command line; the files and services in it do not exist."""
    words, command = [], commands
    context = commands.make_context("beaconframes", [], resilient_parsing=True)
    while hasattr(command, "list_commands") and chance.random() < 0.95:
        name = chance.choice([n for n in command.list_commands(context) if n not in NEVER])
        words.append(name)
        command = command.get_command(context, name)
    for _ in range(chance.choice([0, 1, 1, 2, 3, 5])):
        known = [w for w in option_names(command) if w.startswith("-") and w not in NEVER]
        words += chance.choices(
            [
                [chance.choice(known)],
                [chance.choice(known), chance.choice(ODD)],
                [f"{chance.choice(known)}={chance.choice(ODD)}"],
                [chance.choice(ODD)],
                [f"--{chance.choice(['url', 'api-key', 'frobnicate', 'help', 'v2', 'vv'])}"],
            ],
            weights=[3, 5, 2, 2, 1],
        )[0]
    return words


NEVER = ("demo", "serve", "simulate", "--follow")
"""These run for a long time, or without an end."""


@pytest.fixture
def isolated(monkeypatch, tmp_path, chain):
    """The small chain as the only source, no store, an empty home folder."""
    monkeypatch.setenv("BEACONFRAMES_SAMPLE", str(chain.path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


def run_lines(seeds, seconds):
    """Run a command line for each seed; return those with a wrong exit code, output or duration."""
    wrong = []
    for seed in seeds:
        words = random_line(random.Random(seed))
        started = time.monotonic()
        result = CliRunner().invoke(commands, words, input="1\n2\n")
        took = time.monotonic() - started
        fine = result.exit_code in (0, 2) or result.exit_code in MORE.get("".join(words[:1]), ())
        shown = result.stderr.replace("\n", "")
        safe = shown.isprintable() or "\udcff" in "".join(words)
        if not (
            fine and safe and took < seconds and ("--debug" in words or "Traceback" not in shown)
        ):
            wrong.append((seed, words, result.exit_code, result.output[-300:], took))
    return wrong


LOADING = ("load", "plot", "wall", "export", "plan", "record", "quota", "report", "analyse")
MORE = {"store": (9,), **dict.fromkeys(LOADING, (3, 6, 7, 9))}
"""Other exit codes of these: a missing file, no response, or an unknown object."""


def test_a_hundred_random_command_lines(isolated):
    """C07: each prints help or one line, and no traceback."""
    assert [] == run_lines(range(100), seconds=120)


@pytest.mark.long
def test_two_thousand_random_command_lines(isolated):
    """C07: the same, for more seeds."""
    assert [] == run_lines(range(1000, 3400), seconds=2)


def test_serve_and_simulate_refuse_invalid_options(isolated):
    """The error comes before the start."""
    for words in (
        ["serve", "missing"], ["serve", "--port", "x"], ["serve", "--port", "70000"],
        ["serve", "--rate", "0"], ["serve", "--wire", "smoke"],
        ["simulate"], ["simulate", "--out"], ["simulate", "--validators", "0", "--out", "x"],
        ["demo", "more"],
    ):  # fmt: skip
        result = CliRunner().invoke(commands, words)

        assert (2, "") == (result.exit_code, result.stdout), words
        assert 1 == result.stderr.count("\n")


@pytest.fixture
def run_in(chain, tmp_path):
    """Run a command in its own process with the given environment."""

    def run(*words, **environment):
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "VIRTUAL_ENV", "TMPDIR")}
        return subprocess.run(
            [sys.executable, "-m", "beaconframes", *words, "--dataset", str(chain.path)],
            check=False, capture_output=True, env=env | environment, cwd=tmp_path,
            preexec_fn=drop_privileges if sys.platform == "linux" else None,
        )  # fmt: skip

    return run


def drop_privileges():
    """Remove the right of root to write to read-only folders."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


PLACES = {
    "C locale, no HOME": lambda _: {"LC_ALL": "C", "LANG": "C"},
    "ASCII only": lambda home: {"HOME": str(home), "PYTHONIOENCODING": "ascii"},
    "HOME that is not a folder": lambda _: {"HOME": "/dev/null"},
    "HOME that cannot be written": lambda home: {"HOME": str(home / "locked")},
    "HOME with spaces": lambda home: {"HOME": str(home / "a b" / "é 漢字")},
}
FIRST, *OTHERS = PLACES


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(FIRST, marks=pytest.mark.more),
        *(pytest.param(other, marks=pytest.mark.long) for other in OTHERS),
    ],
)
def test_unusual_environments(run_in, tmp_path, place):
    """C09: a table and a file, with a name that the locale cannot encode."""
    environment = PLACES[place](tmp_path)
    if environment.get("HOME", "/dev/null") != "/dev/null":
        Path(environment["HOME"]).mkdir(parents=True, exist_ok=True)
    locked = tmp_path / "locked"
    if locked.exists():
        locked.chmod(0o555)

    result = run_in("load", "epochs", "--since", "-3", "--out", "é 漢字.csv", **environment)

    assert (0, b"") == (result.returncode, result.stderr)
    assert b": 3 rows, " in result.stdout
    assert 4 == len((tmp_path / "é 漢字.csv").read_text().splitlines())
    assert not locked.exists() or [] == list(locked.iterdir())


def test_a_sample_that_cannot_be_stored(monkeypatch, tmp_path, chain):
    """Without the package's sample, and with a read-only cache, --local simulates it and warns."""
    simulated = []

    def simulate(folder, **arguments):
        simulated.append(arguments)
        return chain

    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: blocked / "cache")
    monkeypatch.setattr("beaconframes.simulator.simulation_store.simulate", simulate)
    monkeypatch.setattr("beaconframes.simulator.simulation_store.SAMPLE_FOLDERS", ())

    result = CliRunner().invoke(commands, ["load", "latest-state", "--local"])

    assert 0 == result.exit_code
    assert 1 == len(simulated)
    assert "cannot be stored" in result.stderr


def readme_examples():
    """The commands of the README."""
    part = README.read_text().partition("## Command line")[2].partition("\n## ")[0]
    block = re.search(r"```console\n(.*?)```", part, re.DOTALL)
    lines = re.sub(r"\\\n\s*", "", block[1]).splitlines()
    return [line.removeprefix("$ ") for line in lines]


@pytest.mark.long
def test_the_examples_of_the_readme(machine_cache, monkeypatch, tmp_path):
    """Each works as written, without a network, and writes its file."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: machine_cache / "beaconframes")
    monkeypatch.chdir(tmp_path)
    first, *rest = readme_examples()
    name, value = first.removeprefix("export ").split("=")
    monkeypatch.setenv(name, value)

    result = [CliRunner().invoke(commands, shlex.split(line)[1:]) for line in rest]

    assert 5 <= len(rest)
    assert [(0, "beaconframes")] * len(rest) == [
        (one.exit_code, line.split()[0]) for one, line in zip(result, rest, strict=True)
    ]
    assert all(one.stdout and not one.stderr for one in result[1:])
    assert FILES_OF_THE_README == {file.name for file in tmp_path.iterdir()}
    assert 3 == pl.read_parquet("income.parquet")["validator_index"].n_unique()


@pytest.mark.long
def test_the_examples_of_the_readme_in_a_shell(machine_cache, tmp_path):
    """The same in a shell."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BEACONFRAMES_")}
    here = str(Path(sys.executable).parent)
    result = subprocess.run(
        ["/bin/bash", "-ec", "\n".join(readme_examples())],
        check=False, capture_output=True, text=True, cwd=tmp_path,
        env=env | {"XDG_CACHE_HOME": str(machine_cache), "PATH": f"{here}:{env['PATH']}"},
    )  # fmt: skip

    assert 0 == result.returncode, result.stderr
    assert FILES_OF_THE_README == {file.name for file in tmp_path.iterdir()}


def test_every_command_has_help():
    """The help text starts with the usage."""
    for name in COMMANDS:
        result = CliRunner().invoke(commands, [name, "--help"])
        assert 0 == result.exit_code
        assert result.stdout.startswith(f"Usage: beaconframes {name}")
