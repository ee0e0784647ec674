"""Loaders of slots, deposits and queues against the local explorer: the dataset, and no more.

What is expected is read from the dataset's own files with polars alone.
"""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.simulator.old_attestations import OldAttestations

PLACE = ["block_slot", "block_root", "block_index"]
KEYS = {
    "slot_attestations": PLACE,
    "attester_slashings": PLACE,
    "proposer_slashings": PLACE,
    "slot_withdrawals": ["block_slot", "withdrawal_index"],
    "voluntary_exits": PLACE,
    "slot_deposits": PLACE,
    "deposits": ["block_number", "tx_index", "merkletree_index"],
    "deposit_origin": ["from_address", "pubkey", "valid_signature"],
    "withdrawal_credentials": ["credentials", "validator_index"],
}
ITEMS = [name for name, key in KEYS.items() if key[0] == "block_slot"]
COUNTED = {
    "slot_attestations": "attestations_count",
    "attester_slashings": "attester_slashings_count",
    "proposer_slashings": "proposer_slashings_count",
    "slot_withdrawals": "withdrawals_count",
    "voluntary_exits": "voluntary_exits_count",
}


def known(chain, table, *conditions):
    """Return the rows of a table of the dataset that meet the conditions, by key."""
    rows = chain.scan(table).filter(*conditions).collect()
    return rows.sort(KEYS[table], nulls_last=True)


def eventful(chain, table, count):
    """Return *count* slots, with as many slots that have items as possible."""
    slots = chain.scan(table).select(pl.col("block_slot").unique().sort()).collect().to_series()
    first = slots.to_list()[:count] or [0]
    return [*first, *(slot for slot in range(2 * count) if slot not in first)][:count]


# Each slot or transaction takes a request of its own, so a hundred is no border.
COUNTS = [
    1,
    11,
    pytest.param(101, marks=pytest.mark.more),
    pytest.param(1000, marks=pytest.mark.long),
]


@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
@pytest.mark.parametrize("count", COUNTS)
def test_blocks_by_slot(chain, explorer, count):
    """One request per slot; the canonical block of two; slots without a block are listed."""
    torn = chain.scan("blocks").filter(status="orphaned").select("slot").collect()["slot"]
    slots = list(dict.fromkeys([*torn, *range(9000, 9000 + count)]))[:count]

    found = bf.load_slots(slots)

    there = pl.col("status").is_in(["proposed", "orphaned"])
    expected = (
        chain.scan("blocks").filter(there, pl.col("slot").is_in(slots)).collect()
        .sort("slot", pl.col("status") == "orphaned").unique("slot", keep="first")
        .sort("slot")
    )  # fmt: skip
    assert_frame_equal(expected.select(found.columns), found)
    assert count == explorer.requests


@pytest.mark.long
def test_blocks_by_root(chain, explorer):
    """Orphaned blocks load by their root."""
    orphans = chain.scan("blocks").filter(status="orphaned").head(20).collect()
    orphans = orphans.sort("slot", "block_root")

    found = bf.load_slots(orphans["block_root"])

    assert_frame_equal(orphans.select(found.columns), found)
    assert orphans.height == explorer.requests > 0


def test_missed_slots_are_listed(chain, explorer):
    """The warning lists those slots and no others."""
    missed = chain.scan("blocks").filter(status="missed").select("slot").collect()["slot"][:3]
    slots = sorted({slot + step for slot in missed for step in (0, 1)})
    expected = [slot for slot in slots if slot in missed.to_list() or slot not in with_block(chain)]

    with pytest.warns(bf.MissingRows) as caught:
        bf.load_slots(slots)

    assert expected == sorted(caught[0].message.missing["slot"])


def with_block(chain):
    """Return the slots that have a block."""
    blocks = chain.scan("blocks").filter(pl.col("block_root").is_not_null())
    return set(blocks.select("slot").collect()["slot"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("table", ITEMS)
@pytest.mark.parametrize("count", COUNTS)
def test_the_items_of_slots(chain, explorer, table, count):
    """Every item, in one request per slot; an empty slot is not missing."""
    slots = eventful(chain, table, count)

    found = getattr(bf, f"load_{table}")(slots)

    expected = known(chain, table, pl.col("block_slot").is_in(slots))
    assert_frame_equal(expected.select(found.columns), found)
    assert count == explorer.requests
    assert found.select(KEYS[table]).is_unique().all()


@pytest.mark.more
def test_a_range_of_slots(chain, explorer):
    """A range of slots loads like a list."""
    found = bf.load_slot_withdrawals(range(12_000, 12_200))

    expected = known(chain, "slot_withdrawals", pl.col("block_slot").is_between(12_000, 12_199))
    assert_frame_equal(expected.select(found.columns), found)
    assert 200 == explorer.requests


@pytest.mark.more
@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
@pytest.mark.parametrize("table", COUNTED)
def test_a_block_counts_its_items(chain, explorer, table):
    """The number of items equals the count in the canonical block."""
    newest = range(chain.meta["latest_slot"] - 7, chain.meta["latest_slot"] + 1)
    slots = [*eventful(chain, table, 8), *newest]

    items = getattr(bf, f"load_{table}")(slots)

    blocks = bf.load_slots(slots).filter(status="proposed")
    counted = {slot: n for slot, n in blocks.select("slot", COUNTED[table]).rows() if n}
    assert counted == dict(items.group_by("block_slot").len().rows())
    assert counted


def test_the_latest_slot_by_its_name(chain, explorer):
    """Attestations send the word; the other endpoints send the number."""
    latest = chain.meta["latest_slot"]

    attestations = bf.load_slot_attestations("latest")
    withdrawals = bf.load_slot_withdrawals("latest")

    assert 2 == explorer.requests
    for table, found in (("slot_attestations", attestations), ("slot_withdrawals", withdrawals)):
        expected = known(chain, table, pl.col("block_slot") == latest)
        assert_frame_equal(expected.select(found.columns), found)


@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
@pytest.mark.parametrize("count", COUNTS)
def test_deposits_by_transaction(chain, explorer, count):
    """One request per transaction; a transaction without deposits is requested once more."""
    hashes = chain.scan("deposits").select(pl.col("tx_hash").unique().sort()).collect()["tx_hash"]
    requested = [*hashes, *(f"0x{n:064x}" for n in range(count))][:count]

    found = bf.load_transaction_deposits(requested)

    assert count + (count > len(hashes)) == explorer.requests
    expected = known(chain, "deposits", pl.col("tx_hash").is_in(requested))
    assert_frame_equal(expected.select(found.columns), found)


def test_each_depositor_has_all_of_its_public_keys(chain, explorer):
    """Each depositor has all of its public keys, with and without a validator."""
    everybody = chain.scan("deposit_origin").select("from_address").collect().to_series()
    some = everybody.unique().sort()[:20]

    found = bf.load_deposit_origin(some)

    expected = known(chain, "deposit_origin", pl.col("from_address").is_in(some.implode()))
    assert_frame_equal(expected.select(found.columns), found)
    pages = sum(-(-(height + 1) // 2000) for height in some_heights(expected))
    assert pages + (0 in expected["validator_index"]) == explorer.requests


def some_heights(rows):
    """Return the number of public keys of each depositor."""
    return rows.group_by("from_address").len()["len"].to_list()


def test_validators_by_credentials(chain, explorer):
    """By credentials, the validators of the dataset; by address, all that pay to it."""
    known_credentials = known(chain, "withdrawal_credentials")
    some = known_credentials["credentials"].unique().sort()
    requested = [*some[:5], *some.filter(some.str.starts_with("0x02"))[:2]]

    found = bf.load_withdrawal_credentials(requested)

    expected = known(chain, "withdrawal_credentials", pl.col("credentials").is_in(requested))
    assert_frame_equal(expected.select(found.columns), found)
    assert len(set(requested)) == explorer.requests
    paying = some.filter(some.str.starts_with("0x01"))[0]
    address = "0x" + paying[-40:]
    both = known(chain, "withdrawal_credentials", pl.col("credentials").str.ends_with(address[2:]))
    by_address = bf.load_withdrawal_credentials(address)
    assert both["validator_index"].sort().to_list() == by_address["validator_index"].to_list()


def test_the_queue_equals_the_dataset(chain, explorer):
    """The row equals that of the dataset."""
    found = bf.load_validator_queue()

    assert 1 == explorer.requests
    assert_frame_equal(chain.scan("validator_queue").collect().select(found.columns), found)


@pytest.mark.parametrize("name", [*ITEMS, "slots", "transaction_deposits", "deposit_origin",
                                  "withdrawal_credentials"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.* is empty, so no rows:UserWarning")
def test_no_subjects_return_no_rows_and_all_columns(explorer, name):
    """No request is sent, and the frame has the whole schema."""
    nothing = getattr(bf, f"load_{name}")([])

    assert 0 == explorer.requests
    assert 0 == nothing.height < nothing.width


def test_attestations_of_old_slots(chain, explorer):
    """E11: the lists of old epochs, which are not stored, have as many rows as the blocks count."""
    stored = chain.scan("slot_attestations").select(pl.col("block_slot").min()).collect().item()
    slots = [*range(12), *range(stored - 3, stored + 1)]
    blocks = (
        chain.scan("blocks")
        .filter(pl.col("slot").is_in(slots), pl.col("attestations_count") > 0, status="proposed")
        .select("slot", "block_root", count="attestations_count")
        .collect()
    )

    rows = bf.load_slot_attestations(slots)

    counts = rows.group_by("block_slot", "block_root").agg(count=pl.len().cast(pl.Int64))
    assert_frame_equal(blocks, counts.rename({"block_slot": "slot"}), check_row_order=False)
    assert blocks.height > 12
    bits = [int(text, 16).bit_count() - 1 for text in rows["aggregation_bits"]]
    assert bits == rows["validators"].list.len().to_list()


def test_old_attestations_are_drawn_as_they_were(chain):
    """E11: drawn again from the seed, the attestations of a stored epoch are the stored ones."""
    drawn = OldAttestations(chain)
    epoch = chain.meta["finalized_epoch"]
    inside = pl.col("block_slot") // 32 == epoch

    expected = known(chain, "slot_attestations", inside)

    assert_frame_equal(expected, drawn.draw(epoch))
    assert range(chain.meta["latest_epoch"] - 99) == drawn.epochs


@pytest.mark.more
def test_attestations_of_all_old_slots(chain):
    """E11: a draw that disagreed with the blocks of its epoch would return no rows."""
    drawn = OldAttestations(chain)
    assert all(drawn.draw(epoch).height > 30 for epoch in drawn.epochs[::3])
