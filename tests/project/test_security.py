"""What sources, files and packages of the project must not contain."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .test_repository import ROOT, texts, tracked

UNSAFE = {
    "code from text": r"(?<![\w.])(?:eval|exec)\(",
    "pickle": r"\b(?:import|from) (?:pickle|marshal|shelve|dill|cloudpickle)\b",
    "YAML with objects": r"\byaml\.(?:load|unsafe_load|full_load)\(",
    "a shell": r"\bshell\s*=\s*True|\bos\.(?:system|popen)\(",
    "no certificate check": r"\bverify\s*=\s*False|CERT_NONE|check_hostname\s*=\s*False",
    "a predictable name": r"\btempfile\.mktemp\(",
    "SQL from values": r"""\bf["'](?:SELECT|INSERT|UPDATE|DELETE|DROP|ALTER)\b[^"']*\{[^}]*\}""",
}
"""By what is unsafe: its pattern."""

SECRETS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "a token": r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}|xox[abp]-[\w-]{20,}|sk-[A-Za-z0-9]{32,})\b",
    "an API key": r"(?i)\b(?:apikey|api_key|bearer)[\"' :=]+[A-Za-z0-9+/]{28,}",
    "an address of a person": (
        r"(?<=[\w+-])@(?!(?:\w+\.)*(?:example|test|localhost)\b)[\w-]+\.(?:com|net|org|io|de)\b"
    ),
}  # fmt: skip
"""By kind of secret: its pattern."""


def find(patterns, files):
    """Return each finding as file, line number and kind."""
    joined = {kind: re.compile(pattern) for kind, pattern in patterns.items()}
    return [
        (name, 1 + text.count("\n", 0, match.start()), kind, match[0][:60])
        for name, text in files
        for kind, pattern in joined.items()
        for match in pattern.finditer(text)
        # Ruff finds SQL in f-strings, too; its exceptions state why no value is in the text.
        if "# noqa: S608 - " not in text[match.end() :].partition("\n")[0]
    ]


@pytest.mark.more
def test_sources_contain_no_unsafe_calls():
    """Q09: no code from text, pickle, shell, unchecked certificate or SQL made of values."""
    sources = [(n, text) for n, text in texts() if n.startswith("src/") and n.endswith(".py")]

    assert len(sources) > 100
    assert [] == find(UNSAFE, sources)


@pytest.mark.more
def test_files_contain_no_secrets():
    """Q10: no file of the project contains a real key or the address of a person."""
    assert [] == find(SECRETS, texts())


@pytest.mark.more
def test_history_contains_no_secrets():
    """Q10: no earlier version of a file contains a key."""
    pattern = "BEGIN ([A-Z]+ )?PRIVATE KEY-----|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}"
    log = subprocess.run(
        ["git", "log", "--format=%h", "-E", f"-G{pattern}", "--", ":!tests/project"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if log.returncode:
        pytest.skip("git cannot search the history")

    assert [] == log.stdout.split()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("eval(text)", "code from text"),
        ("from pickle import loads", "pickle"),
        ("run(command, shell=True)", "a shell"),
        ("httpx.Client(verify=False)", "no certificate check"),
        ('execute(f"SELECT * FROM x WHERE y = {value}")', "SQL from values"),
        ("-----BEGIN PRIVATE " + "KEY-----", "a private key"),
        ("apikey=" + "a1B2" * 8, "an API key"),
        ("someone@" + "mail.com", "an address of a person"),
    ],
)
def test_patterns_find_code(text, kind):
    """The patterns find what they name."""
    assert [kind] == [found for _, _, found, _ in find(UNSAFE | SECRETS, [("x", text)])]


@pytest.mark.long
def test_two_builds_are_identical(tmp_path):
    """Q08: wheel and sdist of one state have the same bytes; the wheel has package and sample."""
    # Other tests may create and delete files in the checkout while it is built.
    source = tmp_path / "source"
    for path in tracked():
        copy = source / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    digests = []
    for number in range(2):
        target = tmp_path / str(number)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-d", str(target)],
            cwd=source, check=True, capture_output=True,
            env={**os.environ, "TZ": ("UTC", "Asia/Tokyo")[number]},
        )  # fmt: skip
        digests.append(
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in target.iterdir()}
        )
    names = zipfile.ZipFile(next((tmp_path / "0").glob("*.whl"))).namelist()

    assert digests[0] == digests[1]
    assert 2 == len(digests[0])
    assert {"beaconframes"} == {Path(name).parts[0].split("-")[0] for name in names}
    own = [name for name in names if not name.startswith("beaconframes/data/sample/")]
    assert len(own) < len(names)
    assert [] == [
        name for name in own if re.search(r"\btests?\b|\.parquet|__pycache__|\.pyc|\.key", name)
    ]
