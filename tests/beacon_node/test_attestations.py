"""Attestations in blocks: signers, duties and votes, compared with expected values."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaconframes.beacon_node.chain.votes import count_votes, read_votes
from beaconframes.beacon_node.client.slot_blocks import ORPHANED, SlotBlock, read_slots
from beaconframes.beacon_node.tables.attestations import build_attestations, build_slot_attestations
from beaconframes.consensus.participation import decode_bitlist
from beaconframes.errors import ResponseError
from beaconframes.v1 import attestations, slot_attestations

from ..support.node_tables import build_block_tables
from ..support.recorded_blocks import load_blocks

CHAINS = ("altair", "capella", "electra")


@pytest.fixture(params=CHAINS)
def chain(request):
    return load_blocks(request.param)


def build_duties(chain, epoch):
    return build_attestations(chain.spec, epoch, chain.committees[epoch], chain.votes_of(epoch))


def test_inclusions_equal_the_votes_that_were_cast():
    """Each validator of each epoch of the Electra chain, with slot, committee and inclusion."""
    chain = load_blocks("electra")
    duties = pl.concat([build_duties(chain, epoch) for epoch in chain.epochs])
    expected = sorted(
        (slot // 8, validator, slot, committee, inclusion)
        for slot, committee, _, validator, _, inclusion in chain.expected["attestation_votes"]
    )
    columns = ("epoch", "validator_index", "attester_slot", "committee_index", "inclusion_slot")
    assert expected == sorted(duties.select(columns).rows())
    assert duties.select(
        ((pl.col("status") == "missed") == pl.col("inclusion_slot").is_null()).all()
    ).item()
    assert {"included", "missed"} == set(duties["status"])
    attestations.Attestations.check(duties, chain.spec.chain)


@pytest.mark.more
def test_timely_and_right_votes_are_those_that_the_chain_rewarded(chain):
    """The expected rewards of each duty say which votes were right and included in time.

    The limits are 2 slots for the source (the square root of 8), 8 for the target before Deneb,
    and 1 for the head. In a leak, a right vote has no reward.
    """
    expected = chain.expected
    rewards = (
        expected.get("attestation_rewards_gwei") or (expected["attestation_rewards_of_duty_epoch"])
    )
    slashed = {"altair": (), "capella": (7, 8, 13, 14), "electra": (15, 16, 60)}
    roots = {}
    for slot in chain.slots:
        roots[slot.slot] = slot.root or roots[slot.slot - 1]
    aggregates = build_slot_attestations(chain.spec, chain.votes).explode("validators")
    inclusions = {(row["slot"], row["validators"], row["block_slot"]): row
                  for row in aggregates.iter_rows(named=True)}  # fmt: skip
    compared = 0
    for epoch, row in rewards.items():
        head_is_rewarded = max(row["head"]) > 0
        for index, slot, block in (
            build_duties(chain, int(epoch))
            .select("validator_index", "attester_slot", "inclusion_slot")
            .rows()
        ):
            if index in slashed[chain.recording.name]:
                continue
            vote = inclusions.get((slot, index, block))
            delay = block - slot if block else 99
            has_target = vote is not None and vote["target_root"] == roots[slot // 8 * 8]
            has_head = has_target and vote["beacon_block_root"] == roots[slot]
            longest = 15 if chain.recording.name == "electra" else 8
            assert (delay <= 2) == (row["source"][index] >= 0), (epoch, index)
            assert (has_target and delay <= longest) == (row["target"][index] >= 0), (epoch, index)
            if head_is_rewarded:
                assert (has_head and delay == 1) == (row["head"][index] > 0), (epoch, index)
            compared += 1
    assert compared > 500


def test_aggregates_have_the_signers_that_their_bits_select():
    """Bits in Python integers give the same signers; since Electra they span committees."""
    for name in CHAINS:
        chain = load_blocks(name)
        frame = build_slot_attestations(chain.spec, chain.votes)
        slot_attestations.SlotAttestations.check(frame, chain.spec.chain)
        counts = [len(answer["message"]["body"]["attestations"]) if answer else 0
                  for answer in chain.answers.values()]  # fmt: skip
        assert sum(counts) == frame.height
        for row in frame.iter_rows(named=True):
            block = chain.answers[row["block_slot"]]["message"]
            attestation = block["body"]["attestations"][row["block_index"]]
            committees = chain.committees[row["slot"] // 8].at_slot(row["slot"])
            selected = [int(attestation["data"]["index"])]
            if "committee_bits" in attestation:
                bits = int(attestation["committee_bits"], 16)
                selected = [n for n in range(4) if bits >> n & 1]
            members = [int(index) for n in selected for index in committees[n]]
            bits = int.from_bytes(bytes.fromhex(attestation["aggregation_bits"][2:]), "little")
            assert bits.bit_length() == len(members) + 1
            assert [index for n, index in enumerate(members) if bits >> n & 1] == row["validators"]
            assert chain.headers[row["block_slot"]]["root"] == row["block_root"]
            assert attestation["data"]["beacon_block_root"] == row["beacon_block_root"]
            assert int(attestation["data"]["index"]) == row["committee_index"]


def test_votes_of_a_block_count_each_vote_once():
    """Each included vote of the Electra chain counts for exactly one block."""
    chain = load_blocks("electra")
    counts = count_votes(chain.votes)
    included = [row for row in chain.expected["attestation_votes"] if row[5] is not None]
    assert len(included) == sum(counts.values())
    blocks = build_block_tables(chain.spec, chain.slots, counts)["blocks"]
    assert blocks.filter(status="missed")["votes"].null_count() == 34
    assert len(included) == blocks["votes"].sum()
    # The right votes for a block are those of its slot, and of the missed slots that follow.
    right = dict.fromkeys(chain.answers, 0)
    for slot, *_, kind, _ in included:
        newest = max(each for each in chain.headers if each <= slot)
        right[newest] += kind in {"ok", "late"}
    for slot, votes in blocks.filter(status="proposed").select("slot", "votes").rows():
        assert right[slot] <= votes


def test_aggregates_that_overlap_do_not_count_twice():
    chain = load_blocks("capella")
    attestation = chain.answers[1]["message"]["body"]["attestations"][0]
    block = chain.change(2, ("message", "body", "attestations"), [attestation] * 3)
    slots = read_slots(chain.spec, {1: chain.answers[1], 2: block}, proposers={})
    votes = read_votes(chain.spec, slots, chain.committees)
    assert len(votes) == 4
    assert count_votes(votes) == {chain.headers[0]["root"]: 2}


def test_votes_and_signers_are_unknown_without_the_committees():
    chain = load_blocks("electra")
    slots = [slot for slot in chain.slots if slot.slot // 8 == 3]
    votes = read_votes(chain.spec, slots, {3: chain.committees[3]})
    frame = build_slot_attestations(chain.spec, votes)
    unknown = frame.filter(pl.col("target_epoch") == 2)
    assert unknown.height == unknown["validators"].null_count() > 0
    known = frame.filter(pl.col("target_epoch") == 3)
    assert known["validators"].null_count() == 0
    counts = count_votes(votes)
    assert {counts[root] for root in unknown["beacon_block_root"]} == {None}
    with pytest.raises(ValueError, match="committees of epoch 2"):
        build_attestations(chain.spec, 2, chain.committees[2], votes)


def test_orphaned_blocks_include_nothing():
    """The service counts an attestation in an orphaned block only as missed."""
    chain = load_blocks("electra")
    slots = [
        SlotBlock(slot.slot, ORPHANED, slot.proposer_index, slot.root, slot.block)
        for slot in chain.slots
        if slot.slot // 8 in {3, 4} and slot.block
    ]
    votes = read_votes(chain.spec, slots, chain.committees)
    duties = build_attestations(chain.spec, 3, chain.committees[3], votes)
    assert set(duties["status"]) == {"missed"}
    assert count_votes(votes) == {}
    assert build_slot_attestations(chain.spec, votes).height == len(votes) > 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), max_size=70))
def test_bit_lists_are_decoded_to_their_bits(bits):
    """The SSZ encoding puts a delimiter bit after the last one."""
    number = sum(bit << n for n, bit in enumerate(bits)) | 1 << len(bits)
    text = "0x" + number.to_bytes(len(bits) // 8 + 1, "little").hex()
    assert bits == decode_bitlist(text).tolist()


@pytest.mark.parametrize("text", ["0x", "0x00", "0xff00"])
def test_a_bit_list_without_a_delimiter_is_invalid(text):
    with pytest.raises(ValueError, match="delimiter"):
        decode_bitlist(text)


ATTESTATION = ("message", "body", "attestations", 0)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=3))
def test_bits_of_another_length_are_an_error_that_names_slot_and_attestation(data):
    """Any bytes either have one bit per member, or are refused; nothing else is raised."""
    chain = load_blocks("electra")
    text = "0x" + data.hex()
    members = sum(map(len, chain.committees[2].at_slot(17)))
    block = chain.change(18, (*ATTESTATION, "aggregation_bits"), text)

    def read():
        slots = read_slots(chain.spec, {18: block}, proposers={})
        return read_votes(chain.spec, slots, chain.committees)

    if int.from_bytes(data, "little").bit_length() == members + 1 and data[-1]:
        (vote,) = read()
        assert len(vote.bits) == members
        return
    with pytest.raises(ResponseError, match="slot 18") as caught:
        read()
    assert "attestations[0]" in caught.value.message
    assert "aggregation_bits" in caught.value.message


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("committee_bits",), "0x07", "names committee 2 of slot 17, of 2"),
        (("committee_bits",), "0x01", "has 9 aggregation_bits, but its committees have"),
        (("committee_bits",), "0x00", "has 9 aggregation_bits, but its committees have 0"),
        (("committee_bits",), "0x0300", "has 2 bytes of committee_bits"),
        (("data", "index"), "1", "has index 1, but it must be below 1"),
        (("data", "slot"), "18", "is for slot 18"),
        (("data", "slot"), str(2**64), "is for slot 1844"),
        (("data", "slot"), "15", "target epoch 2"),
        (("data", "target", "epoch"), "3", "target epoch 3"),
        (("data", "source", "epoch"), "9", "source epoch 9"),
    ],
)
def test_an_attestation_that_fits_no_committee_is_an_error(path, value, message):
    chain = load_blocks("electra")
    block = chain.change(18, (*ATTESTATION, *path), value)
    slots = read_slots(chain.spec, {18: block}, proposers={})
    with pytest.raises(ResponseError, match=r"slot 18 .*attestations\[0\]") as caught:
        read_votes(chain.spec, slots, chain.committees)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("index", "message"), [("1", "names committee 1 of slot 39"), ("4", "has index 4")]
)
def test_an_unknown_committee_before_electra_is_an_error(index, message):
    chain = load_blocks("capella")
    block = chain.change(40, (*ATTESTATION, "data", "index"), index)
    slots = read_slots(chain.spec, {40: block}, proposers={})
    with pytest.raises(ResponseError, match=rf"attestations\[0\] {message}"):
        read_votes(chain.spec, slots, chain.committees)


def test_slots_without_attestations_have_tables_without_rows():
    chain = load_blocks("electra")
    slots = read_slots(chain.spec, {14: None}, proposers=chain.proposers)
    votes = read_votes(chain.spec, slots, chain.committees)
    assert slot_attestations.SlotAttestations.empty().equals(
        build_slot_attestations(chain.spec, votes)
    )
    duties = build_attestations(chain.spec, 1, chain.committees[1], votes)
    assert set(duties["status"]) == {"missed"}
    frames = build_block_tables(chain.spec, slots)
    assert {name for name, frame in frames.items() if frame.height} == {"blocks"}
