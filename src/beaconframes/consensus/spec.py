"""The constants of a chain, which a node states in ``/eth/v1/config/spec`` and ``genesis``.

Names are those of the consensus specification, in lower case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from beaconframes.calendar import PUBLIC_CHAINS, Chain
from beaconframes.consensus.rewards import RewardConstants
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORKS: Final = ("phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu")
FAR_FUTURE_EPOCH: Final = 2**63 - 1
"""An epoch that never comes. The node's value, 2**64 - 1, does not fit int64."""

DOMAIN_BEACON_PROPOSER: Final = bytes.fromhex("00000000")
DOMAIN_BEACON_ATTESTER: Final = bytes.fromhex("01000000")

_FORK_EPOCH = re.compile(r"(\w+)_FORK_EPOCH")
_DECIMAL = re.compile(r"[0-9]{1,20}")
_YEAR_9999 = 253_402_300_799
_MINIMAL: Final = {
    "max_committees_per_slot": 4,
    "target_committee_size": 4,
    "shuffle_round_count": 10,
    "slots_per_epoch": 8,
    "slots_per_historical_root": 64,
    "epochs_per_historical_vector": 64,
    "epochs_per_slashings_vector": 64,
    "sync_committee_size": 32,
    "epochs_per_sync_committee_period": 8,
    "max_withdrawals_per_payload": 4,
    "max_validators_per_withdrawals_sweep": 16,
    "seconds_per_slot": 6,
    "min_per_epoch_churn_limit": 2,
    "max_per_epoch_activation_churn_limit": 4,
    "churn_limit_quotient": 32,
    "min_per_epoch_churn_limit_electra": 64 * 10**9,
    "max_per_epoch_activation_exit_churn_limit": 128 * 10**9,
}
"""The values of the minimal preset that differ from mainnet."""

_MAY_BE_ZERO: Final = {
    "min_seed_lookahead",
    "max_seed_lookahead",
    "min_attestation_inclusion_delay",
    "min_epochs_to_inactivity_penalty",
    "inactivity_score_recovery_rate",
    "min_validator_withdrawability_delay",
    "ejection_balance",
}


@dataclass(frozen=True, kw_only=True)
class Spec(RewardConstants):
    """The constants of a chain. The defaults are those of mainnet."""

    name: str
    genesis_time: int
    genesis_validators_root: bytes
    fork_epochs: dict[str, int] = field(hash=False)
    """The first epoch of each fork, in order of activation; ``FAR_FUTURE_EPOCH``: not scheduled."""
    fork_versions: dict[str, bytes] = field(hash=False)

    max_committees_per_slot: int = 64
    target_committee_size: int = 128
    shuffle_round_count: int = 90
    max_effective_balance: int = 32 * 10**9
    min_attestation_inclusion_delay: int = 1
    slots_per_epoch: int = 32
    min_seed_lookahead: int = 1
    max_seed_lookahead: int = 4
    slots_per_historical_root: int = 8192
    min_epochs_to_inactivity_penalty: int = 4
    epochs_per_historical_vector: int = 65_536
    epochs_per_slashings_vector: int = 8192
    whistleblower_reward_quotient: int = 512
    inactivity_penalty_quotient_altair: int = 3 * 2**24
    min_slashing_penalty_quotient_altair: int = 64
    proportional_slashing_multiplier_altair: int = 2
    sync_committee_size: int = 512
    epochs_per_sync_committee_period: int = 256
    inactivity_penalty_quotient_bellatrix: int = 2**24
    min_slashing_penalty_quotient_bellatrix: int = 32
    proportional_slashing_multiplier_bellatrix: int = 3
    max_withdrawals_per_payload: int = 16
    max_validators_per_withdrawals_sweep: int = 16_384
    min_activation_balance: int = 32 * 10**9
    max_effective_balance_electra: int = 2048 * 10**9
    min_slashing_penalty_quotient_electra: int = 4096
    whistleblower_reward_quotient_electra: int = 4096
    max_blob_commitments_per_block: int = 4096
    max_deposit_requests_per_payload: int = 8192
    max_withdrawal_requests_per_payload: int = 16
    max_pending_deposits_per_epoch: int = 16

    seconds_per_slot: int = 12
    min_validator_withdrawability_delay: int = 256
    inactivity_score_bias: int = 4
    inactivity_score_recovery_rate: int = 16
    ejection_balance: int = 16 * 10**9
    min_per_epoch_churn_limit: int = 4
    max_per_epoch_activation_churn_limit: int = 8
    churn_limit_quotient: int = 65_536
    min_per_epoch_churn_limit_electra: int = 128 * 10**9
    max_per_epoch_activation_exit_churn_limit: int = 256 * 10**9

    @classmethod
    def parse(cls, config: Mapping[str, Any], genesis: Mapping[str, Any]) -> Spec:
        """Return the constants of the chain with this *config* and *genesis*, as a node sends them.

        A constant that the node does not state has the value of its preset, mainnet or minimal.
        """
        names = [each.name for each in fields(cls) if each.type == "int"]
        names.remove("genesis_time")
        base = str(config.get("PRESET_BASE"))
        presets: dict[str, dict[str, int]] = {"mainnet": {}, "minimal": _MINIMAL}
        constants = {name: _parse_constant(config, name) for name in names if _key(name) in config}
        if "seconds_per_slot" not in constants and "SLOT_DURATION_MS" in config:
            constants["seconds_per_slot"] = _parse_slot_duration(config)
        missing = [_key(name) for name in names if name not in constants]
        if missing and base not in presets:
            raise ResponseError(
                f"the node's spec has no {missing[0]}, and its PRESET_BASE is {base!r:.80}",
                hint="Only the presets mainnet and minimal have known values",
            )
        versions = _parse_fork_versions(config)
        epochs = {
            fork: 0 if fork == "phase0" else _parse_epoch(config, f"{fork.upper()}_FORK_EPOCH")
            for fork in versions
        }
        return cls(
            name=str(config.get("CONFIG_NAME", base)),
            genesis_time=_parse_integer(genesis, "genesis_time", "genesis", _YEAR_9999),
            genesis_validators_root=_parse_bytes(genesis, "genesis_validators_root", 32, "genesis"),
            # Forks of the same epoch keep their order: the sort is stable.
            fork_epochs=dict(sorted(epochs.items(), key=lambda item: item[1])),
            fork_versions=versions,
            **presets.get(base, {}) | constants,
        )

    @property
    def chain(self) -> Chain:
        """Return the clock of the chain: that of a public chain, or a new one."""
        genesis = datetime.fromtimestamp(self.genesis_time, UTC)
        name, known = self.name, PUBLIC_CHAINS.get(self.name)
        if known is not None and known.genesis == genesis:
            return known
        if known is not None:  # A private chain with the settings of a public one.
            name = f"{name}-{self.genesis_validators_root.hex()[:8]}"
        return Chain(
            name,
            genesis=genesis,
            seconds_per_slot=self.seconds_per_slot,
            slots_per_epoch=self.slots_per_epoch,
            epochs_per_sync_period=self.epochs_per_sync_committee_period,
            sync_committee_size=self.sync_committee_size,
            first_sync_epoch=self.fork_epochs.get("altair", 0),
        )

    def fork_at(self, epoch: int) -> str:
        """Return the name of the fork that is active in *epoch*."""
        return [fork for fork, first in self.fork_epochs.items() if first <= epoch][-1]

    def epoch_of(self, slot: int) -> int:
        """Return the epoch of a slot."""
        return slot // self.slots_per_epoch

    def first_slot_of(self, epoch: int) -> int:
        """Return the first slot of an epoch."""
        return epoch * self.slots_per_epoch

    def get_inactivity_penalty_quotient(self, fork: str) -> int:
        """Return the quotient of inactivity penalties in *fork*."""
        if is_since(fork, "bellatrix"):
            return self.inactivity_penalty_quotient_bellatrix
        return self.inactivity_penalty_quotient_altair

    def get_min_slashing_penalty_quotient(self, fork: str) -> int:
        """Return the quotient of the initial penalty of a slashing in *fork*."""
        if is_since(fork, "electra"):
            return self.min_slashing_penalty_quotient_electra
        if is_since(fork, "bellatrix"):
            return self.min_slashing_penalty_quotient_bellatrix
        return self.min_slashing_penalty_quotient_altair

    def get_proportional_slashing_multiplier(self, fork: str) -> int:
        """Return the multiplier of the correlation penalty in *fork*."""
        if is_since(fork, "bellatrix"):
            return self.proportional_slashing_multiplier_bellatrix
        return self.proportional_slashing_multiplier_altair

    def get_whistleblower_reward_quotient(self, fork: str) -> int:
        """Return the quotient of the reward for reporting a slashing in *fork*."""
        if is_since(fork, "electra"):
            return self.whistleblower_reward_quotient_electra
        return self.whistleblower_reward_quotient

    def get_max_effective_balance(self, fork: str) -> int:
        """Return the largest effective balance that any validator can have in *fork*."""
        if is_since(fork, "electra"):
            return self.max_effective_balance_electra
        return self.max_effective_balance


def is_since(fork: str, first: str) -> bool:
    """Return whether *fork* is the fork *first* or a later one; both are known forks."""
    if fork not in FORKS:
        raise ResponseError(
            f"fork {fork!r} is not supported",
            hint=f"Supported forks: {', '.join(FORKS[1:])}. A newer beaconframes may support it",
        )
    return FORKS.index(fork) >= FORKS.index(first)


def _key(name: str) -> str:
    return name.upper()


def _parse_constant(config: Mapping[str, Any], name: str) -> int:
    value = _parse_integer(config, _key(name), "spec")
    if value == 0 and name not in _MAY_BE_ZERO:
        raise ResponseError(f"{_key(name)} of the node's spec is 0; it must be 1 or more")
    return value


def _parse_slot_duration(config: Mapping[str, Any]) -> int:
    milliseconds = _parse_integer(config, "SLOT_DURATION_MS", "spec")
    if milliseconds == 0 or milliseconds % 1000:
        raise ResponseError(
            f"SLOT_DURATION_MS of the node's spec is {milliseconds}; "
            "it must be a whole number of seconds"
        )
    return milliseconds // 1000


def _parse_fork_versions(config: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the version of each fork of the config in order: known forks, then later ones."""
    versions = {"phase0": _parse_bytes(config, "GENESIS_FORK_VERSION", 4, "spec")}
    stated = [match[1].lower() for key in config if (match := _FORK_EPOCH.fullmatch(key))]
    later = {name: _parse_fork_version(config, name) for name in stated if name not in FORKS}
    for name in FORKS[1:]:
        if name in stated:
            versions[name] = _parse_fork_version(config, name)
    return versions | dict(sorted(later.items(), key=lambda item: item[1]))


def _parse_fork_version(config: Mapping[str, Any], name: str) -> bytes:
    return _parse_bytes(config, f"{name.upper()}_FORK_VERSION", 4, "spec")


def _parse_epoch(config: Mapping[str, Any], key: str) -> int:
    return min(_parse_integer(config, key, "spec", 2**64 - 1), FAR_FUTURE_EPOCH)


def _parse_integer(
    values: Mapping[str, Any], key: str, place: str, largest: int = FAR_FUTURE_EPOCH
) -> int:
    text = values.get(key)
    if not isinstance(text, str | int) or not _DECIMAL.fullmatch(str(text)) or int(text) > largest:
        raise ResponseError(
            f"{key} of the node's {place} is {text!r:.80}; "
            f"it must be an integer from 0 to {largest}"
        )
    return int(text)


def _parse_bytes(values: Mapping[str, Any], key: str, size: int, place: str) -> bytes:
    text = values.get(key)
    if not isinstance(text, str) or not re.fullmatch(rf"0x[0-9a-fA-F]{{{2 * size}}}", text):
        raise ResponseError(
            f"{key} of the node's {place} is {text!r:.80}; it must be 0x and {2 * size} digits"
        )
    return bytes.fromhex(text[2:])
