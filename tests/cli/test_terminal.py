"""The command line on a real terminal, with rows that contain control characters."""

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

from beaconframes.cli.rendering import display_width
from beaconframes.dataset import Dataset

from ..support.untrusted_texts import TEXTS

pytestmark = pytest.mark.more
COLUMNS = 80
CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
BOLD = re.compile("\x1b\\[(1|0)m")


@pytest.fixture(scope="module")
def malicious(chain, tmp_path_factory):
    """A dataset in which every block has a malicious graffiti text."""
    folder = tmp_path_factory.mktemp("malicious") / "data"
    meta = {name: value for name, value in chain.meta.items() if name != "format_version"}
    made = Dataset.create(folder, meta=meta)
    blocks = chain.scan("blocks").filter(pl.col("status") == "proposed").head(len(TEXTS)).collect()
    texts = list(itertools.islice(itertools.cycle(TEXTS), blocks.height))
    graffiti = pl.Series("graffiti_text", texts)
    made.write("blocks", [blocks.with_columns(graffiti)])
    return folder, blocks["slot"].to_list()


def run_on_terminal(*words, **environment):
    """Run the command on a terminal of 80 columns; return its exit code and its output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST  # the bytes as written
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    environment = {"TERM": "xterm", "BEACONFRAMES_PROGRESS": "0", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env=inherited | environment,
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
    "NO_COLOR": ([], {"NO_COLOR": "1"}),
    "json": (["--json"], {}),
    "csv": (["--format", "csv"], {}),
    "jsonl": (["--format", "jsonl"], {}),
    "raw csv": (["--format", "csv", "--raw"], {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_output_has_no_control_characters(malicious, way):
    """C04: all 75 texts in every output of rows: no control characters, at most 80 columns."""
    folder, slots = malicious
    options, environment = WAYS[way]
    status, sent = run_on_terminal(
        "load", "slots", "--slots", ",".join(map(str, slots)), "--dataset", str(folder),
        "--columns", "graffiti_text,slot", "--rows", "200", *options, **environment,
    )  # fmt: skip

    assert 0 == status, sent
    plain = BOLD.sub("", sent) if way == "table" else sent
    assert (way == "table") == (plain != sent)
    assert [] == CONTROL.findall(plain)
    if way == "json":
        shown = [row["graffiti_text"] for row in json.loads(sent)["data"]]
        assert shown == list(itertools.islice(itertools.cycle(TEXTS), len(slots)))
    elif way in ("table", "NO_COLOR"):
        lines = plain.splitlines()
        assert 1 + len(slots) == len(lines)
        assert max(map(display_width, lines)) <= COLUMNS
        # One row is one line, and the number is at the same column in each.
        assert 1 == len({display_width(line) for line in lines})
    else:
        assert len(slots) + (way != "jsonl") == len(plain.splitlines())


def test_messages_have_no_control_characters(malicious, tmp_path):
    """Messages quote file names, arguments and columns as visible characters."""
    folder, slots = malicious
    for words in (
        [
            "load",
            "slots",
            "--slots",
            str(slots[0]),
            "--dataset",
            str(folder),
            "--columns",
            MALICIOUS,
        ],
        ["load", "slots", "--slots", MALICIOUS, "--dataset", str(folder)],
        ["load", MALICIOUS],
        ["load", "slots", "--slots", "1", "--dataset", MALICIOUS],
        ["export", "dataset", str(folder), "--out", str(tmp_path / MALICIOUS), "--name", MALICIOUS],
        ["plot", "income", str(tmp_path / f"{MALICIOUS}.csv"), "--out", str(tmp_path / "x.png")],
        [MALICIOUS],
        [f"--{MALICIOUS}"],
    ):
        status, sent = run_on_terminal(*words)
        assert status in (2, 9), words
        assert [] == CONTROL.findall(sent)
        assert 1 == sent.count("\n")


MALICIOUS = "a\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.\u2066\rb\n\x7f"
