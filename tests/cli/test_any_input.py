"""The command line under whatever people type, and wherever they are."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shlex
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from beaconframes.cli import COMMANDS, commands

from ..support.untrusted_texts import TEXTS

README = Path(__file__).resolve().parents[2] / "README.md"

ODD = [
    "", "-", "--", "---", "-1", "0", "1", "1,2,3", "1-5", "5-1", "1..3", "99999999999999999999",
    "latest", "2026-10-01", "2026-13-01", "30d", "1e5", "nan", "-inf", "0x", "0x" + "a" * 96,
    "dashboard:1", "owner:", "eth", "csv", "parquet", "/", ".", "..", "~", "*", "%s", "{}", "$HOME",
    "a=b", "=", "http://127.0.0.1:9", "http://127.0.0.1:9/x", "https://[::1",
    "\\", "'", '"', "\n", "\t", "é", "漢字", "🚀", "\udcff", "\x00"[:0], "x" * 5000,
    *(text for text in TEXTS if "\0" not in text and len(text) < 500),
]  # fmt: skip


def parameters(command):
    """The options of a command."""
    return [
        word
        for parameter in command.params
        for word in (*parameter.opts, *parameter.secondary_opts)
    ]


def line(chance):
    """A command line that may or may not make sense; nothing that it names is there."""
    words, command = [], commands
    context = commands.make_context("beaconframes", [], resilient_parsing=True)
    while hasattr(command, "list_commands") and chance.random() < 0.95:
        name = chance.choice([n for n in command.list_commands(context) if n not in NEVER])
        words.append(name)
        command = command.get_command(context, name)
    for _ in range(chance.choice([0, 1, 1, 2, 3, 5])):
        known = [w for w in parameters(command) if w.startswith("-") and w not in NEVER]
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
"""These do something when they make sense, for as long as it takes."""


@pytest.fixture
def nowhere(monkeypatch, tmp_path, chain):
    """Nobody to ask but the small chain, nothing kept, and a folder of its own."""
    monkeypatch.setattr("beaconframes.cli.asking.kept_sample", lambda: nullcontext(chain))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


def try_lines(seeds, seconds):
    """Run a line for each seed; return those that ended otherwise than they may, or too late."""
    wrong = []
    for seed in seeds:
        words = line(random.Random(seed))
        started = time.monotonic()
        told = CliRunner().invoke(commands, words, input="1\n2\n")
        took = time.monotonic() - started
        fine = told.exit_code in (0, 2) or told.exit_code in MORE.get("".join(words[:1]), ())
        shown = told.stderr.replace("\n", "")
        calm = shown.isprintable() or "\udcff" in "".join(words)
        if not (
            fine and calm and took < seconds and ("--debug" in words or "Traceback" not in shown)
        ):
            wrong.append((seed, words, told.exit_code, told.output[-300:], took))
    return wrong


ASKING = ("load", "plot", "wall", "export", "plan", "record", "quota")
MORE = {"store": (9,), **dict.fromkeys(ASKING, (3, 6, 7, 9))}
"""These may find that a file is not there, that nobody answers, or that there is no such thing."""


def test_a_hundred_random_command_lines(nowhere):
    """Each ends with help or with one line; none with a traceback."""
    assert [] == try_lines(range(100), seconds=30)


@pytest.mark.long
def test_two_thousand_random_command_lines(nowhere):
    """The same, for longer."""
    assert [] == try_lines(range(1000, 3400), seconds=2)


def test_serve_and_simulate_refuse_nonsense(nowhere):
    """What makes no sense is refused before anything begins."""
    for words in (
        ["serve", "nowhere"], ["serve", "--port", "x"], ["serve", "--port", "70000"],
        ["serve", "--rate", "0"], ["serve", "--wire", "smoke"],
        ["simulate"], ["simulate", "--out"], ["simulate", "--validators", "0", "--out", "x"],
        ["demo", "more"],
    ):  # fmt: skip
        told = CliRunner().invoke(commands, words)

        assert (2, "") == (told.exit_code, told.stdout), words
        assert 1 == told.stderr.count("\n")


@pytest.fixture
def somewhere(chain, tmp_path):
    """Run a command in a process of its own, in surroundings that are said."""

    def run(*words, **environment):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "VIRTUAL_ENV", "TMPDIR")}
        return subprocess.run(
            [sys.executable, "-m", "beaconframes", *words, "--dataset", str(chain.path)],
            check=False, capture_output=True, env=kept | environment, cwd=tmp_path,
            preexec_fn=unprivileged if sys.platform == "linux" else None,
        )  # fmt: skip

    return run


def unprivileged():
    """Take from the process, which may be root's, the right to write where nobody may."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


PLACES = {
    "C locale, no HOME": lambda _: {"LC_ALL": "C", "LANG": "C"},
    "ASCII only": lambda home: {"HOME": str(home), "PYTHONIOENCODING": "ascii"},
    "HOME that is no folder": lambda _: {"HOME": "/dev/null"},
    "HOME that cannot be written": lambda home: {"HOME": str(home / "locked")},
    "HOME with spaces": lambda home: {"HOME": str(home / "a b" / "é 漢字")},
}
FIRST, *OTHERS = PLACES


@pytest.mark.parametrize(
    "place", [FIRST, *(pytest.param(other, marks=pytest.mark.long) for other in OTHERS)]
)
def test_it_works_wherever_one_is(somewhere, tmp_path, place):
    """A table and a file, with a name in letters that the place may not know."""
    environment = PLACES[place](tmp_path)
    if environment.get("HOME", "/dev/null") != "/dev/null":
        Path(environment["HOME"]).mkdir(parents=True, exist_ok=True)
    locked = tmp_path / "locked"
    if locked.exists():
        locked.chmod(0o555)

    told = somewhere("load", "epochs", "--since", "-3", "--out", "é 漢字.csv", **environment)

    assert (0, b"") == (told.returncode, told.stderr)
    assert b": 3 rows, " in told.stdout
    assert 4 == len((tmp_path / "é 漢字.csv").read_text().splitlines())
    assert not locked.exists() or [] == list(locked.iterdir())


def test_a_sample_that_cannot_be_kept(monkeypatch, tmp_path, chain):
    """Where the cache cannot be written, --local simulates for this time and says so."""
    made = []

    def simulate(folder, **arguments):
        made.append(arguments)
        return chain

    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: blocked / "cache")
    monkeypatch.setattr("beaconframes.simulator.simulate", simulate)

    told = CliRunner().invoke(commands, ["load", "latest-state", "--local"])

    assert 0 == told.exit_code
    assert 1 == len(made)
    assert "cannot be kept" in told.stderr


def examples():
    """What stands after the prompt in the README's part on the command line."""
    part = README.read_text().partition("## On the command line")[2].partition("\n## ")[0]
    block = re.search(r"```console\n(.*?)```", part, re.DOTALL)
    return [line.removeprefix("$ ") for line in block[1].splitlines()]


def test_the_examples_of_the_readme(sample_cache, monkeypatch, tmp_path):
    """Each works as it stands, without a network, and leaves what it says."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: sample_cache / "beaconframes")
    monkeypatch.chdir(tmp_path)
    first, *rest = examples()
    name, value = first.removeprefix("export ").split("=")
    monkeypatch.setenv(name, value)

    told = [CliRunner().invoke(commands, shlex.split(line)[1:]) for line in rest]

    assert 5 <= len(rest)
    assert [(0, "beaconframes")] * len(rest) == [
        (one.exit_code, line.split()[0]) for one, line in zip(told, rest, strict=True)
    ]
    assert all(one.stdout and not one.stderr for one in told[1:])
    assert {"income.parquet", "income.png", "wall.png", "income"} == {
        file.name for file in tmp_path.iterdir()
    }
    assert 3 == pl.read_parquet("income.parquet")["validator_index"].n_unique()


@pytest.mark.long
def test_the_examples_of_the_readme_in_a_shell(sample_cache, tmp_path):
    """The same, as one types them."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BEACONFRAMES_")}
    here = str(Path(sys.executable).parent)
    told = subprocess.run(
        ["/bin/bash", "-ec", "\n".join(examples())],
        check=False, capture_output=True, text=True, cwd=tmp_path,
        env=kept | {"XDG_CACHE_HOME": str(sample_cache), "PATH": f"{here}:{kept['PATH']}"},
    )  # fmt: skip

    assert 0 == told.returncode, told.stderr
    assert {"income.parquet", "income.png", "wall.png", "income"} == {
        file.name for file in tmp_path.iterdir()
    }


def test_every_command_says_what_it_does():
    """The help of each, and of each below it."""
    for name in COMMANDS:
        told = CliRunner().invoke(commands, [name, "--help"])
        assert 0 == told.exit_code
        assert told.stdout.startswith(f"Usage: beaconframes {name}")
