"""`bf.validators`: files that people have, as validators of loaders, reports and commands."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.cli import commands
from beaconframes.errors import DatasetError, UsageError

# Written by ethstaker_deposit 1.3.1 from the mnemonic of the BIP-39 test vectors.
KEYS = Path(__file__).parent / "recordings" / "validator_keys"
FIRST = (
    "0xb3e445d43871965d890a398f719348a1405ac72e35b92727cc570026f54471af"
    "7ea7b2040622a8fd0b5bfb2a209b5911"
)
SECOND = (
    "0xaeb399bf5648b0e9980c1731824c269631a41320c3d7f730c40587e1a37a5e1c"
    "8b5755fd90080a7b3fb90d3fd419c0a7"
)
KEYSTORE = next(KEYS.glob("keystore-m_12381_3600_0_*"))
DEPOSITS = next(KEYS.glob("deposit_data-*"))
# The shape of the documentation of Obol, with the fields that are read and some of the others.
CLUSTER = {
    "cluster_definition": {"name": "north", "num_validators": 2, "operators": []},
    "distributed_validators": [
        {"distributed_public_key": key, "public_shares": ["0x" + "ab" * 48]}
        for key in (FIRST, SECOND)
    ],
    "lock_hash": "0x" + "12" * 32,
}


def write(path, content):
    """Write a file of text, or of JSON."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def rows(frame):
    """Return the index or key, the group and the name of each row."""
    assert {
        "validator_index": pl.Int64, "pubkey": pl.String, "group": pl.String, "name": pl.String,
    } == dict(frame.schema)  # fmt: skip
    assert all((index is None) != (key is None) for index, key, *_ in frame.iter_rows())
    return [(index if key is None else key, *rest) for index, key, *rest in frame.iter_rows()]


@pytest.mark.parametrize("path", [KEYSTORE, DEPOSITS, KEYS], ids=["keystore", "deposits", "folder"])
def test_files_of_the_deposit_tool(path):
    keys = [FIRST] if path == KEYSTORE else [FIRST, SECOND]

    assert [(key, None, None) for key in keys] == rows(bf.validators(path))


def test_a_folder_of_a_client_has_its_keystores_below_it(tmp_path):
    """Other files of JSON are no validators; each validator counts once."""
    for key in (FIRST, SECOND):
        (folder := tmp_path / "validators" / key).mkdir(parents=True)
        source = KEYSTORE if key == FIRST else next(KEYS.glob("keystore-m_12381_3600_1_*"))
        shutil.copy(source, folder / "voting-keystore.json")
    write(tmp_path / "slashing_protection.json", {"metadata": {}, "data": [{"pubkey": "0x12"}]})
    write(tmp_path / "other.json", [{"endpoint": "localhost"}])

    assert {FIRST, SECOND} == set(bf.validators(str(tmp_path))["pubkey"])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("list", f"3, 5-7\n# mine\n{FIRST[2:].upper()} 5\n", [3, 5, 6, 7, FIRST]),
        ("list.txt", f"{FIRST}\n", [FIRST]),
        ("list.json", [3, "5", FIRST[2:]], [3, 5, FIRST]),
        ("validators.csv", "validator_index\n3\n0\n", [3, 0]),
        ("keys.csv", f'"pubkey"\n{FIRST[2:].upper()}\n', [FIRST]),
        ("bom.csv", "\ufeffIndex,label\r\n3,x\r\n", [3]),
        ("bom.json", "\ufeff[3, 5]", [3, 5]),
        ("blank.csv", "\nvalidator_index\n3\n", [3]),
        ("cluster-lock.json", CLUSTER, [FIRST, SECOND]),
    ],
)
def test_validators_of_a_file(tmp_path, name, content, expected):
    found = rows(bf.validators(write(tmp_path / name, content)))

    assert expected == [validator for validator, _, _ in found]
    assert {"north" if name == "cluster-lock.json" else None} == {group for _, group, _ in found}


TABLE = f"name,group,validator_index,public_key\nA1,A,3,\n, ,5,\nB1,B,,{FIRST}\nA1,A,3,\n"
ROWS = [(3, "A", "A1"), (5, None, None), (FIRST, "B", "B1")]


def test_groups_and_names_of_a_table(tmp_path):
    assert ROWS == rows(bf.validators(write(tmp_path / "table.csv", TABLE)))
    # Excel for Macintosh ends lines so.
    assert ROWS == rows(bf.validators(write(tmp_path / "old.csv", TABLE.replace("\n", "\r"))))


def test_a_workbook(tmp_path):
    """Numbers are numbers there, and a row may be empty."""
    table = pl.DataFrame(
        {"group": ["A", None, None, "B"], "Validator_Index": [3, 5, None, 2**31 - 2]}
    )
    table.write_excel(tmp_path / "validators.xlsx")

    expected = [(3, "A", None), (5, None, None), (2**31 - 2, "B", None)]
    assert expected == rows(bf.validators(tmp_path / "validators.xlsx"))
    pl.DataFrame({"index": ["3", "x"]}).write_excel(tmp_path / "wrong.xlsx")
    with pytest.raises(UsageError, match=r"line 3 of .*wrong.xlsx: 'x' is not a valid"):
        bf.validators(tmp_path / "wrong.xlsx")


def test_an_address_instead_of_a_file_names_the_loaders_of_its_validators():
    """A withdrawal address is not the name of a file."""
    with pytest.raises(DatasetError, match=r"bf\.load_withdrawal_credentials"):
        bf.validators("0x" + "1b" * 20)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("none.csv", None, DatasetError, "the file {} does not exist"),
        ("empty", "", UsageError, "{} has no validators"),
        ("no rows.csv", "validator_index,group\n", UsageError, "{} has no rows"),
        ("empty.json", [], UsageError, "{} has no validators"),
        ("other.json", {"data": []}, UsageError, "{} has no validators"),
        ("broken.json", '[{"pubkey": ', DatasetError, "{} is not JSON"),
        ("wrong.json", [{"pubkey": "0x12"}], UsageError, "{}: '0x12' is not a validator"),
        ("negative.json", [-3], UsageError, "{}: -3 is not a validator"),
        ("no key.json", {"crypto": {"kdf": {}}}, UsageError, "the keystore {} has no public key"),
        ("list", "3\n4,x\n", UsageError, "line 2 of {}: 'x' is not a validator"),
        ("address", "0x" + "12" * 20, UsageError, "is an address, not a validator"),
        ("a.csv", "index\n3\n1.5\n", UsageError, "line 3 of {}: '1.5' is not a valid validator_i"),
        ("b.csv", "index\n2147483647\n", UsageError, "line 2 of {}: '2147483647' is not a valid"),
        ("c.csv", "pubkey\n0x12\n", UsageError, "line 2 of {}: '0x12' is not a valid pubkey"),
        ("c.csv", f"pubkey\n{FIRST}00\n", UsageError, "line 2 of {}: '0xb3e4"),
        ("d.csv", "index,pubkey\n,\n", UsageError, "line 2 of {}: '' is not a valid validator_ind"),
        ("e.csv", "index,group\n3,A\n3,B\n", UsageError, "line 3 of {}: validator 3 is in several"),
        ("f.csv", "index;group\n3;A\n", UsageError, "the columns of {} are separated by semicolon"),
        ("g.xlsx", "index\n3\n", DatasetError, "{} cannot be read as a workbook"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, name, content, error, message):
    path = tmp_path / name
    if content is not None:
        write(path, content)
    for wrong in (None, [1, 2], 7):
        with pytest.raises(UsageError, match=r"is not the name of a file. Loaders take indices"):
            bf.validators(wrong)

    with pytest.raises(error) as caught:
        bf.validators(path)

    assert message.format(path) in str(caught.value)


SECRET = json.loads(KEYSTORE.read_text())["crypto"]
SECRETS = [
    SECRET["cipher"]["message"], SECRET["checksum"]["message"], SECRET["kdf"]["params"]["salt"],
    SECRET["cipher"]["params"]["iv"],
]  # fmt: skip


def test_nothing_of_the_secret_is_kept(running, tmp_path, caplog, monkeypatch):
    """Neither in rows, messages and logs, nor in any file that loads, exports or errors write."""
    caplog.set_level(logging.DEBUG)
    keys = tmp_path / "keys"
    shutil.copytree(KEYS, keys)
    damaged = write(keys / "damaged.json", KEYSTORE.read_text().replace('"version": 4', '"version'))
    with pytest.raises(DatasetError) as caught:
        bf.validators(keys)
    damaged.unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = bf.validators(keys)
    written = tmp_path / "rows.csv"
    arguments = ["load", "validators", "--validators", str(keys), "--url", running.url]
    arguments += ["--store", str(tmp_path / "store"), "--out", str(written)]
    result = CliRunner().invoke(commands, arguments)

    assert 3 == result.exit_code, result.output  # The sample has none of these validators.
    shown = f"{found} {found.write_json()} {result.output} {caught.value} {caplog.text}"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and keys not in path.parents]
    assert written in files
    shown = shown.encode() + b"".join(path.read_bytes() for path in files)
    assert FIRST.encode() in shown
    for secret in SECRETS:
        assert secret.encode() not in shown
        assert bytes.fromhex(secret) not in shown


def test_loaders_take_the_rows(running, chain):
    """The index, or else the public key, of frames of polars and pandas."""
    keys = chain.scan("validators").head(4).collect()["pubkey"]
    given = pl.DataFrame({"validator_index": [0, None, 2], "pubkey": [None, keys[1], keys[3]]})
    with bf.Explorer(running.url, chain=running.service.chain, head=running.service.head) as source:
        for frame in (given, given.lazy(), pd.DataFrame({"validator_index": [0, 1, 2]})):
            found = bf.load_validators(frame, explorer=source)
            assert [0, 1, 2] == found["validator_index"].to_list()
        assert bf.load_produced_blocks(given, explorer=source).equals(
            bf.load_produced_blocks([0, keys[1], 2], explorer=source)
        )
        assert 1 == bf.load_validators(np.array(2), explorer=source).height
        assert [1] == bf.v2.load_rewards(given[1:2], since=-3, until=-3, explorer=source)[
            "validator_index"
        ].to_list()
        nothing = pl.DataFrame({"validator_index": [1, None]})
        with pytest.raises(UsageError, match=r"missing value \(None\)"):
            bf.load_validators(nothing, explorer=source)


@pytest.mark.parametrize("option", ["VALIDATORS", "--groups"])
def test_a_report_compares_the_groups_of_keys(chain, running, tmp_path, option):
    """With the same file, in Python and as either argument of the command."""
    keys = chain.scan("validators").head(6).collect()["pubkey"].to_list()
    lines = [f"{key[2:].upper()},{'AB'[place % 2]}\n" for place, key in enumerate(keys)]
    table = write(tmp_path / "validators.csv", "pubkey,group\n" + "".join(lines))
    arguments = [str(table)] if option == "VALIDATORS" else ["--groups", str(table)]
    limits = ["--since", "440", "--until", "441", "--url", running.url]

    result = CliRunner().invoke(commands, ["report", *arguments, *limits, "--json"])

    assert 0 == result.exit_code, result.output
    frames = json.loads(result.stdout)["frames"]
    expected = [(index, "AB"[index % 2]) for index in range(6)]
    found = [(row["validator_index"], row["group"]) for row in frames["validators"]]
    assert expected == sorted(found)


def test_a_validator_of_two_groups_by_index_and_key_is_an_error(chain, running):
    """Only the loaded validators show that both are one."""
    key = chain.scan("validators").head(4).collect()["pubkey"][3]
    groups = pl.DataFrame(
        {"validator_index": [3, None], "pubkey": [None, key], "group": ["A", "B"]}
    )
    with (
        bf.Explorer(running.url, chain=running.service.chain, head=running.service.head) as source,
        pytest.raises(UsageError, match="validator 3 is in several groups"),
    ):
        bf.report(groups=groups, since=440, until=441, explorer=source)
