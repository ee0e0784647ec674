"""The constants of a chain from the node's config and genesis."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from beaconframes.calendar import HOODI, MAINNET
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, Spec, is_since
from beaconframes.errors import ResponseError

from ..support.beacon_states import load_states

FAR_FUTURE = str(2**64 - 1)
MAINNET_CONFIG = {
    "PRESET_BASE": "mainnet",
    "CONFIG_NAME": "mainnet",
    "GENESIS_FORK_VERSION": "0x00000000",
    "ALTAIR_FORK_VERSION": "0x01000000",
    "ALTAIR_FORK_EPOCH": "74240",
    "BELLATRIX_FORK_VERSION": "0x02000000",
    "BELLATRIX_FORK_EPOCH": "144896",
    "CAPELLA_FORK_VERSION": "0x03000000",
    "CAPELLA_FORK_EPOCH": "194048",
    "DENEB_FORK_VERSION": "0x04000000",
    "DENEB_FORK_EPOCH": "269568",
    "ELECTRA_FORK_VERSION": "0x05000000",
    "ELECTRA_FORK_EPOCH": "364032",
    "FULU_FORK_VERSION": "0x06000000",
    "FULU_FORK_EPOCH": "411392",
    "GLOAS_FORK_VERSION": "0x07000000",
    "GLOAS_FORK_EPOCH": FAR_FUTURE,
}
GENESIS = {
    "genesis_time": "1606824023",
    "genesis_validators_root": "0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95",
    "genesis_fork_version": "0x00000000",
}


def parse(genesis=GENESIS, **changes):
    config = MAINNET_CONFIG | changes
    return Spec.parse({key: text for key, text in config.items() if text is not None}, genesis)


def refuse(match, **arguments):
    with pytest.raises(ResponseError, match=match):
        parse(**arguments)


def test_mainnet_has_its_own_chain_and_forks():
    spec = parse()

    assert spec.chain is MAINNET
    assert [
        "phase0", "phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu"
    ] == [
        spec.fork_at(epoch)
        for epoch in (0, 74_239, 74_240, 194_047, 269_567, 364_031, 411_391, 411_392)
    ]  # fmt: skip
    assert spec.fork_epochs["gloas"] == FAR_FUTURE_EPOCH
    assert (3, 96) == (spec.epoch_of(127), spec.first_slot_of(3))


def test_constants_that_the_node_does_not_state_come_from_its_preset():
    assert (32, 90, 512) == (
        parse().slots_per_epoch, parse().shuffle_round_count, parse().sync_committee_size
    )  # fmt: skip
    minimal = parse(PRESET_BASE="minimal")
    assert (8, 10, 32) == (
        minimal.slots_per_epoch, minimal.shuffle_round_count, minimal.sync_committee_size
    )  # fmt: skip
    refuse("spec has no BASE_REWARD_FACTOR, and its PRESET_BASE is 'gnosis'", PRESET_BASE="gnosis")
    refuse("its PRESET_BASE is 'None'", PRESET_BASE=None)


@pytest.mark.parametrize("name", ["capella", "electra"])
def test_the_minimal_preset_is_that_of_a_real_client(name):
    """Lodestar states every constant; those of its config (not the preset) were changed."""
    recording = load_states(name).recording
    stated = Spec.parse(recording.spec, recording.genesis)
    forks = {key: text for key, text in recording.spec.items() if "_FORK_" in key}
    preset = Spec.parse({"PRESET_BASE": "minimal", **forks}, recording.genesis)
    changed = {
        "name", "seconds_per_slot", "min_per_epoch_churn_limit",
        "min_validator_withdrawability_delay", "min_per_epoch_churn_limit_electra",
        "max_per_epoch_activation_exit_churn_limit",
    }  # fmt: skip
    assert changed >= {key for key, value in vars(stated).items() if vars(preset)[key] != value}
    assert stated.seconds_per_slot == int(recording.spec["SECONDS_PER_SLOT"])


def test_slot_duration_may_be_in_milliseconds():
    """Newer configs have milliseconds only."""
    assert parse(SLOT_DURATION_MS="6000").seconds_per_slot == 6
    assert parse(SLOT_DURATION_MS="6000", SECONDS_PER_SLOT="5").seconds_per_slot == 5
    for text in ("0", "1500"):
        refuse(f"SLOT_DURATION_MS of the node's spec is {text}; it must", SLOT_DURATION_MS=text)


def test_chains():
    hoodi = parse(
        {**GENESIS, "genesis_time": "1742213400"}, CONFIG_NAME="hoodi"
    )  # fmt: skip
    assert hoodi.chain is HOODI
    # A private chain with mainnet's config is not mainnet.
    private = parse({**GENESIS, "genesis_time": "1700000000"}).chain
    assert "mainnet-4b363db9" == private.name
    assert private.genesis == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    minimal = parse(PRESET_BASE="minimal", CONFIG_NAME="devnet", ALTAIR_FORK_EPOCH="2").chain
    assert ("devnet", 8, 6, 8, 32, 2) == (
        minimal.name, minimal.slots_per_epoch, minimal.seconds_per_slot,
        minimal.epochs_per_sync_period, minimal.sync_committee_size, minimal.first_sync_epoch,
    )  # fmt: skip


def test_forks_of_one_epoch_keep_their_order():
    """Test networks begin with all of them; a later, unknown fork stays unknown."""
    config = {key: "0" for key in MAINNET_CONFIG if key.endswith("_FORK_EPOCH")}
    config = dict(reversed(config.items())) | {"GLOAS_FORK_EPOCH": "4"}
    spec = Spec.parse({**config, **MAINNET_CONFIG, **config}, GENESIS)

    assert ("fulu", "gloas") == (spec.fork_at(3), spec.fork_at(4))
    with pytest.raises(ResponseError, match="fork 'gloas' is not supported"):
        spec.get_min_slashing_penalty_quotient("gloas")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("SLOTS_PER_EPOCH", "0"), ("SLOTS_PER_EPOCH", "-8"), ("SLOTS_PER_EPOCH", "8.0"),
        ("SLOTS_PER_EPOCH", ""), ("SLOTS_PER_EPOCH", []), ("EJECTION_BALANCE", "9" * 19),
        ("ALTAIR_FORK_EPOCH", "soon"), ("ALTAIR_FORK_VERSION", "0x01"),
        ("ALTAIR_FORK_VERSION", None), ("GENESIS_FORK_VERSION", None),
        ("CAPELLA_FORK_VERSION", 3),
    ],
)  # fmt: skip
def test_malformed_constants_are_named(key, text):
    refuse(f"{key} of the node's spec is ", **{key: text})


@pytest.mark.parametrize(
    ("key", "text"),
    [("genesis_time", "x"), ("genesis_time", "9" * 15), ("genesis_validators_root", "0x12")],
)
def test_malformed_genesis(key, text):
    refuse(f"{key} of the node's genesis is '{text}'; it must be", genesis={**GENESIS, key: text})


def test_quotients_by_fork():
    spec = parse()
    forks = ("altair", "bellatrix", "capella", "deneb", "electra", "fulu")

    assert [64, 32, 32, 32, 4096, 4096] == [
        spec.get_min_slashing_penalty_quotient(fork) for fork in forks
    ]
    assert [2, 3, 3, 3, 3, 3] == [spec.get_proportional_slashing_multiplier(fork) for fork in forks]
    assert [512, 512, 512, 512, 4096, 4096] == [
        spec.get_whistleblower_reward_quotient(fork) for fork in forks
    ]
    assert [50_331_648, *[16_777_216] * 5] == [
        spec.get_inactivity_penalty_quotient(fork) for fork in forks
    ]
    assert [32, 32, 32, 32, 2048, 2048] == [
        spec.get_max_effective_balance(fork) // 10**9 for fork in forks
    ]
    assert [False, False, True] == [
        is_since(fork, "electra") for fork in ("phase0", "deneb", "fulu")
    ]
