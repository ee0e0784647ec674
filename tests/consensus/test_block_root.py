"""Roots of blocks: those of recorded chains, and of blocks at random by the specification."""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path

import pytest

from beaconframes.consensus.block_root import compute_block_root
from beaconframes.consensus.spec import Spec
from beaconframes.errors import ResponseError

from ..support.beacon_states import load_states

BODIES = Path(__file__).parent.parent / "recordings" / "specification_states" / "bodies.jsonl.xz"


@pytest.mark.parametrize(
    ("name", "count"), [("altair", 279), ("capella", 393), ("electra", 366), ("forks", 503)]
)
def test_roots_of_recorded_blocks_are_those_of_their_headers(name, count):
    chain, found = load_states(name), 0
    for slot in chain.recording.block_slots:
        message = chain.data("block", slot)["message"]
        assert compute_block_root(chain.spec, message) == chain.data("header", slot)["root"]
        found += 1
    assert found == count


def read_bodies():
    """Return the spec, message and root of each block at random."""
    for line in lzma.decompress(BODIES.read_bytes()).splitlines():
        case = json.loads(line)
        config = {"PRESET_BASE": case["preset"], "GENESIS_FORK_VERSION": "0x00000000"}
        if case["fork"] != "phase0":
            name = case["fork"].upper()
            config |= {f"{name}_FORK_EPOCH": "0", f"{name}_FORK_VERSION": "0x01000000"}
        genesis = {"genesis_time": "1", "genesis_validators_root": "0x" + "11" * 32}
        yield Spec.parse(config, genesis), case["message"], case["root"]


def test_roots_of_blocks_at_random_are_those_of_the_specification():
    """All forks, both presets; every list has elements, as no recorded block has."""
    forks = []
    for spec, message, root in read_bodies():
        assert compute_block_root(spec, message) == root
        forks.append((spec.fork_at(0), spec.slots_per_epoch))
    assert forks == [
        ("phase0", 32), ("altair", 32), ("altair", 8), ("bellatrix", 32), ("capella", 32),
        ("deneb", 32), ("electra", 32), ("electra", 8), ("fulu", 32),
    ]  # fmt: skip


def list_values(value, path=()):
    """Yield the path of each text in a JSON value."""
    if isinstance(value, str):
        yield path
    else:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            yield from list_values(each, (*path, key))


def test_every_field_of_a_block_changes_its_root():
    """One digit of each text, also of those that no table has."""
    spec, message, root = next(case for case in read_bodies() if case[0].fork_at(0) == "electra")
    paths = [path for path in list_values(message) if path != ("slot",)]
    assert len(paths) > 150
    for path in paths:
        changed = copy.deepcopy(message)
        place = changed
        for key in path[:-1]:
            place = place[key]
        text = place[path[-1]]
        digit = text[-3:-2]
        if len(text) > 2:
            place[path[-1]] = text[:-3] + ("2" if digit == "1" else "1") + text[-2:]
            assert compute_block_root(spec, changed) != root, path


@pytest.mark.parametrize(
    ("field", "value"),
    [("blob_kzg_commitments", ...), ("graffiti", "0x1"), ("graffiti", None), ("deposits", "x")],
)
def test_a_block_without_a_field_is_an_error(field, value):
    spec, message, _ = next(case for case in read_bodies() if case[0].fork_at(0) == "deneb")
    body = {**message["body"], field: value}
    if value is ...:
        del body[field]
    with pytest.raises(ResponseError, match="the block of slot 0 has no root"):
        compute_block_root(spec, {**message, "body": body})
