"""Make states, transitions and blocks at random; the executable specification moves the balances.

Run it from an environment with ``eth-consensus-specs``; the tests do not need that package::

    pip install eth-consensus-specs==1.7.0a13 ckzg
    python make_balances.py ../beacon_node/electra-recording.jsonl.xz .

Signatures are not checked. Whether that of a deposit is valid is a function of its public key and
credentials: the specification asks `is_valid_deposit_signature` for new public keys alone.
"""

import base64
import hashlib
import json
import lzma
import random
import sys
from pathlib import Path

from eth_consensus_specs.deneb import minimal as deneb
from eth_consensus_specs.electra import minimal as electra
from eth_consensus_specs.fulu import minimal as fulu
from eth_consensus_specs.utils import bls

ETH = 10**9
NEVER = 2**64 - 1
SPECS = {"deneb": deneb, "electra": electra, "fulu": fulu}
LINES = [json.loads(line) for line in lzma.decompress(Path(sys.argv[1]).read_bytes()).splitlines()]
SSZ = {row["p"].rsplit("/", 1)[1]: base64.b64decode(row["r"]["ssz"])
       for row in LINES if row["k"] == "state"}  # fmt: skip
CONFIG = next(row["r"]["data"] for row in LINES if row.get("p") == "/eth/v1/config/spec")
numbers = random.Random(17)
bls.bls_active = False


def is_valid(pubkey, credentials, amount, signature):
    """Return whether the signature of a deposit counts as valid: 2 of 3 do."""
    return hashlib.sha256(bytes(pubkey) + bytes(credentials)).digest()[0] % 3 != 0


for each in SPECS.values():
    known = each.config._asdict()
    changes = {name: type(known[name])(int(text)) for name, text in CONFIG.items()
               if name in known and str(text).isdigit()}  # fmt: skip
    each.config = each.config._replace(**changes)
    each.is_valid_deposit_signature = is_valid


def happens(chance):
    """Return True with a chance from 0 to 1."""
    return numbers.random() < chance


def vary_validators(spec, state, ejects):
    """Change validators and balances at random.

    Either some are at the ejection balance, or some wait for their activation. With both, the
    specification's loop over the registry loses exits.
    """
    epoch = int(spec.get_current_epoch(state))
    for index, validator in enumerate(state.validators):
        if happens(0.15):
            most = numbers.choice([1, 3 * 10**6, 40 * ETH, 200 * ETH])
            state.balances[index] = numbers.randrange(most)
        if happens(0.1):
            state.inactivity_scores[index] = numbers.randrange(2_000_000)
        if happens(0.1):
            state.previous_epoch_participation[index] = numbers.randrange(8)
        if happens(0.1):
            validator.exit_epoch = max(1, epoch + numbers.randrange(-4, 8))
            validator.withdrawable_epoch = validator.exit_epoch + numbers.choice([0, 1, 2, 4])
            if happens(0.5):
                validator.slashed = True
                validator.withdrawable_epoch = epoch + numbers.choice([32, 32, 31, 10, 0])
        if ejects and happens(0.05):
            validator.effective_balance = numbers.choice([15, 16, 17, 31]) * ETH
        if not ejects and happens(0.05):
            validator.activation_epoch = validator.exit_epoch = NEVER
            validator.withdrawable_epoch, validator.slashed = NEVER, False
            waits = max(0, epoch - numbers.randrange(5))
            validator.activation_eligibility_epoch = numbers.choice([NEVER, waits])
        if happens(0.05):
            prefix = bytes([numbers.choice([0, 1, 2])])
            validator.withdrawal_credentials = prefix + bytes(validator.withdrawal_credentials)[1:]


def vary_queues(spec, state):
    """Fill the queues of pending deposits and consolidations at random."""
    epoch, count = int(spec.get_current_epoch(state)), len(state.validators)
    finalized = int(state.finalized_checkpoint.epoch)
    new = [b"\xa0" + numbers.randbytes(47) for _ in range(3)]
    state.pending_deposits = [
        spec.PendingDeposit(
            pubkey=numbers.choice(new) if happens(0.3) else state.validators[pick(count)].pubkey,
            withdrawal_credentials=bytes([pick(3)]) + numbers.randbytes(31),
            amount=numbers.choice([1, ETH, 32 * ETH, pick(60 * ETH) + 1]),
            slot=numbers.choice([0, 0, 0, max(0, (finalized + pick(2)) * 8 + pick(6) - 3)]),
        )
        for _ in range(pick(24))
    ]
    state.deposit_balance_to_consume = numbers.choice([0, pick(100 * ETH)])
    if happens(0.2):
        state.eth1_deposit_index -= 1
    state.pending_consolidations = []
    for _ in range(pick(6)):
        source, target = numbers.sample(range(count), 2)
        if happens(0.8):
            validator = state.validators[source]
            validator.exit_epoch = max(1, epoch - pick(6))
            validator.withdrawable_epoch = validator.exit_epoch + numbers.choice([1, 2, 4])
        entry = spec.PendingConsolidation(source_index=source, target_index=target)
        state.pending_consolidations.append(entry)


def pick(limit):
    """Return a number from 0 to less than *limit*."""
    return numbers.randrange(limit)


def make_transition(fork, slot, ejects):
    """Return a transition at the end of an epoch, from Deneb into Electra."""
    spec = SPECS[fork]
    state = spec.BeaconState.decode_bytes(SSZ[slot]) if fork != "fulu" else upgrade(SSZ[slot])
    vary_validators(spec, state, ejects)
    for place in range(len(state.slashings)):
        if happens(0.1):
            state.slashings[place] = pick(600) * ETH
    if fork != "deneb":
        state.current_justified_checkpoint.epoch -= pick(2)
        vary_queues(spec, state)
    before = state.encode_bytes()
    spec.process_epoch(state)
    if fork == "deneb":
        state.slot += 1
        state = electra.upgrade_to_electra(state)
    return {"fork": fork, "before": before.hex(), **describe(state)}


def upgrade(ssz):
    """Return a state of Electra as one of Fulu, at the end of the same epoch."""
    state = electra.BeaconState.decode_bytes(ssz)
    fulu.config = fulu.config._replace(FULU_FORK_EPOCH=electra.get_current_epoch(state))
    return fulu.upgrade_to_fulu(state)


def describe(state):
    """Return a later state and its balances."""
    balances = [int(balance) for balance in state.balances]
    return {"after": state.encode_bytes().hex(), "balances": balances}


def make_blocks(fork, slot):
    """Return three blocks after a state, and the balances before and after them."""
    spec = SPECS[fork]
    state = spec.BeaconState.decode_bytes(SSZ[slot])
    epoch = int(spec.get_current_epoch(state))
    for validator in state.validators:
        if happens(0.1):
            validator.exit_epoch = max(1, epoch + numbers.randrange(-3, 4))
            validator.withdrawable_epoch = validator.exit_epoch + numbers.choice([0, 1, 2, 4, 9])
        if happens(0.05):
            validator.slashed = True
        if happens(0.05):
            address = bytes(validator.withdrawal_credentials)[12:]
            validator.withdrawal_credentials = bytes([pick(3)]) + bytes(11) + address
    before = state.encode_bytes()
    spec.process_slots(state, state.slot + 1)
    for index in range(len(state.balances)):
        if happens(0.25):
            state.balances[index] = pick(numbers.choice([1, 30_000, 10 * ETH, 50 * ETH]))
    start = [int(balance) for balance in state.balances]
    keys, blocks = [b"\xa1" + numbers.randbytes(47) for _ in range(2)], []
    for _ in range(3):
        body = {"attestations": []}
        for operate in (withdraw, slash, deposit, change_credentials, request, sign):
            body |= operate(spec, state, keys)
        proposer = int(spec.get_beacon_proposer_index(state))
        blocks.append({"slot": str(state.slot), "proposer_index": str(proposer), "body": body})
        state.slot += 1
    state.slot -= 1
    case = {"fork": fork, "before": before.hex(), "start": start, "blocks": blocks}
    return case | describe(state)


def withdraw(spec, state, keys):
    """Withdraw from up to 3 validators."""
    withdrawals = []
    for _ in range(pick(4)):
        index = pick(len(state.balances))
        amount = pick(int(state.balances[index]) + 1)
        spec.decrease_balance(state, index, amount)
        withdrawals.append({"validator_index": str(index), "amount": str(amount)})
    return {"execution_payload": {"withdrawals": withdrawals}}


def slash(spec, state, keys):
    """Slash as a proposer slashing and an attester slashing do."""
    epoch, every = spec.get_current_epoch(state), range(len(state.validators))
    accused = numbers.sample(every, pick(2))
    first, second = set(numbers.sample(every, 6)), set(numbers.sample(every, 40))
    for index in [*accused, *sorted(first & second)]:
        if spec.is_slashable_validator(state.validators[index], epoch):
            spec.slash_validator(state, index)
    indices = [{"attesting_indices": [str(index) for index in sorted(each)]}
               for each in (first, second)]  # fmt: skip
    headers = [{"signed_header_1": {"message": {"proposer_index": str(index)}}}
               for index in accused]  # fmt: skip
    return {
        "proposer_slashings": headers,
        "attester_slashings": [dict(zip(("attestation_1", "attestation_2"), indices, strict=True))],
    }


def deposit(spec, state, keys):
    """Deposit for old and new public keys."""
    deposits = []
    for _ in range(pick(4)):
        key = bytes(state.validators[pick(len(state.validators))].pubkey)
        pubkey = numbers.choice(keys) if happens(0.7) else key
        credentials, amount = b"\x01" + numbers.randbytes(31), ETH + pick(40 * ETH)
        spec.apply_deposit(state, pubkey, credentials, amount, bytes(96))
        data = {"pubkey": encode(pubkey), "withdrawal_credentials": encode(credentials)}
        deposits.append({"data": data | {"amount": str(amount)}})
    return {"deposits": deposits}


def change_credentials(spec, state, keys):
    """Give a validator with a BLS key an address."""
    found = [index for index, each in enumerate(state.validators)
             if bytes(each.withdrawal_credentials)[0] == 0]  # fmt: skip
    changes = []
    for index in numbers.sample(found, min(1, len(found))):
        address = numbers.randbytes(20)
        state.validators[index].withdrawal_credentials = b"\x01" + bytes(11) + address
        message = {"validator_index": str(index), "to_execution_address": encode(address)}
        changes.append({"message": message})
    return {"bls_to_execution_changes": changes}


def request(spec, state, keys):
    """Request switches to compounding credentials, and consolidations."""
    requests = []
    for _ in range(pick(5) if spec is electra else 0):
        source = state.validators[pick(len(state.validators))]
        target = source if happens(0.8) else state.validators[pick(len(state.validators))]
        address = bytes(source.withdrawal_credentials)[12:]
        fields = {
            "source_address": address if happens(0.8) else numbers.randbytes(20),
            "source_pubkey": source.pubkey,
            "target_pubkey": target.pubkey,
        }
        spec.process_consolidation_request(state, spec.ConsolidationRequest(**fields))
        requests.append({name: encode(value) for name, value in fields.items()})
    return {"execution_requests": {"consolidations": requests}}


def sign(spec, state, keys):
    """Process a sync aggregate of random seats."""
    share = numbers.random()
    aggregate = spec.SyncAggregate(sync_committee_bits=[happens(share) for _ in range(32)])
    spec.process_sync_aggregate(state, aggregate)
    bits = aggregate.sync_committee_bits.encode_bytes()
    return {"sync_aggregate": {"sync_committee_bits": encode(bits)}}


def encode(value):
    """Return bytes as text."""
    return "0x" + bytes(value).hex()


def save(name, cases):
    """Write a compressed file, one case a line."""
    content = "\n".join(json.dumps(case, separators=(",", ":")) for case in cases).encode()
    packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    (Path(sys.argv[2]) / name).write_bytes(packed)


save("transitions.jsonl.xz", [
    *(make_transition("deneb", "15", ejects) for ejects in (False, False, True)),
    *(make_transition("electra", slot, number % 2)
      for number, slot in enumerate(["87", "87", "87", "303", "303", "303"])),
    *(make_transition("fulu", "303", ejects) for ejects in (False, True)),
])  # fmt: skip
save("blocks.jsonl.xz", [
    *(make_blocks("deneb", "7") for _ in range(4)),
    *(make_blocks("electra", slot) for slot in ("87", "87", "303", "303")),
])  # fmt: skip
