"""The command line on a real terminal, with rows that somebody made to take it over."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import polars as pl
import pytest

from beaconframes.cli.showing import wide
from beaconframes.dataset import Dataset

from ..support.untrusted_texts import TEXTS

pytestmark = pytest.mark.more
COLUMNS = 80
LIVE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
BOLD = re.compile("\x1b\\[(1|0)m")


@pytest.fixture(scope="module")
def hostile(chain, tmp_path_factory):
    """A dataset in which every block has a graffito that is no harmless text."""
    folder = tmp_path_factory.mktemp("hostile") / "data"
    meta = {name: value for name, value in chain.meta.items() if name != "format_version"}
    made = Dataset.create(folder, meta=meta)
    blocks = chain.scan("blocks").filter(pl.col("status") == "proposed").head(150).collect()
    texts = list(itertools.islice(itertools.cycle(TEXTS), blocks.height))
    graffiti = pl.Series("graffiti_text", texts)
    made.write("blocks", [blocks.with_columns(graffiti)])
    return folder, blocks["slot"].to_list()


def on_a_terminal(*words, **environment):
    """Run the command on a terminal of 80 columns; return its status and every byte it sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST  # what was written, and not what the line makes of it
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    environment = {"TERM": "xterm", "BEACONFRAMES_PROGRESS": "0", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env=kept | environment,
    )  # fmt: skip
    os.close(theirs)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        sent += piece
    os.close(ours)
    return process.wait(), sent.decode()


WAYS = {
    "table": ([], {}),
    "no colour": (["--no-color"], {}),
    "NO_COLOR": ([], {"NO_COLOR": "1"}),
    "json": (["--json"], {}),
    "csv": (["--format", "csv"], {}),
    "jsonl": (["--format", "jsonl"], {}),
    "raw csv": (["--format", "csv", "--raw"], {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_is_shown_moves_the_terminal(hostile, way):
    """All 75 texts in every way in which rows are shown: no control, no line wider than 80."""
    folder, slots = hostile
    options, environment = WAYS[way]
    status, sent = on_a_terminal(
        "load", "slots", "--slots", ",".join(map(str, slots)), "--dataset", str(folder),
        "--columns", "graffiti_text,slot", "--rows", "200", *options, **environment,
    )  # fmt: skip

    assert 0 == status, sent
    plain = BOLD.sub("", sent) if way == "table" else sent
    assert (way == "table") == (plain != sent)
    assert [] == LIVE.findall(plain)
    if way == "json":
        shown = [row["graffiti_text"] for row in json.loads(sent)["data"]]
        assert shown == list(itertools.islice(itertools.cycle(TEXTS), len(slots)))
    elif way in ("table", "no colour", "NO_COLOR"):
        lines = plain.splitlines()
        assert 1 + len(slots) == len(lines)
        assert max(map(wide, lines)) <= COLUMNS
        # One row stays one row, and the number stands in the same place in each.
        assert 1 == len({wide(line) for line in lines})
    else:
        assert len(slots) + (way != "jsonl") == len(plain.splitlines())


def test_errors_and_warnings_do_not_move_it_either(hostile, tmp_path):
    """File names, arguments and columns come back in messages, and nothing live with them."""
    folder, slots = hostile
    for words in (
        ["load", "slots", "--slots", str(slots[0]), "--dataset", str(folder), "--columns", EVIL],
        ["load", "slots", "--slots", EVIL, "--dataset", str(folder)],
        ["load", EVIL],
        ["load", "slots", "--slots", "1", "--dataset", EVIL],
        ["export", "dataset", str(folder), "--out", str(tmp_path / EVIL), "--name", EVIL],
        ["plot", "income", str(tmp_path / f"{EVIL}.csv"), "--out", str(tmp_path / "x.png")],
        [EVIL],
        [f"--{EVIL}"],
    ):
        status, sent = on_a_terminal(*words)
        assert status in (2, 9), words
        assert [] == LIVE.findall(sent)
        assert 1 == sent.count("\n")


EVIL = "a\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.\u2066\rb\n\x7f"
