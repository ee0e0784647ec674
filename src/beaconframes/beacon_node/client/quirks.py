"""Known departures of consensus clients from the Beacon API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

FoundBy = Literal["avoided", "corrected", "refused", "probe", "reconciliation"]
"""``avoided``: no request that triggers it is sent; ``corrected``: the answer is repaired;
``refused``: the answer is an error; ``probe``: `Capabilities` reports it; ``reconciliation``: the
answer looks right, but the balances of the epoch do not agree with it."""


@dataclass(frozen=True)
class Quirk:
    """A known departure from the Beacon API."""

    name: str
    client: str
    problem: str
    found_by: FoundBy
    handling: str
    evidence: str


QUIRKS: Final = {
    quirk.name: quirk
    for quirk in (
        Quirk(
            "committee-labels",
            "Lodestar v1.5.1",
            "committees are labeled slot 0, index 0 to 7, instead of their slot",
            "corrected",
            "labels outside the epoch are replaced by the order of the committees",
            "measured: recordings of this client",
        ),
        Quirk(
            "comma-ids",
            "Lodestar v1.5.1",
            "a comma list of ids gives an empty list instead of validators",
            "avoided",
            "ids are sent in the body of a POST request, or as repeated id=",
            "measured: recordings of this client",
        ),
        Quirk(
            "empty-data",
            "any",
            "an empty list for requested ids, with status 200",
            "refused",
            "an answer without a requested validator is an error that names it",
            "measured: Lodestar v1.5.1; beacon-APIs#449",
        ),
        Quirk(
            "skipped-slot-state",
            "Lodestar v1.5.1",
            "the state of a slot without a block is 404, its SSZ state 500",
            "refused",
            "the state of the last block before it is requested instead",
            "measured: recordings of this client",
        ),
        Quirk(
            "old-duties",
            "Lodestar v1.5.1",
            "committees and duties of old epochs are 400 or 500",
            "probe",
            "duties are computed from states, or the epoch is not covered",
            "measured: recordings of this client",
        ),
        Quirk(
            "pruned-states",
            "any client without its archive flag",
            "old states are 404, in some clients with holes",
            "probe",
            "the oldest usable epoch is found by bisection; the flag of the client is named",
            "measured: Lodestar v1.5.1; sigp/lighthouse#4993, #6310",
        ),
        Quirk(
            "no-rewards-routes",
            "Nimbus until August 2026, Lodestar until 2024",
            "the rewards routes, or the one of attestations, do not exist",
            "probe",
            "rewards are computed from SSZ states",
            "status-im/nimbus-eth2#7536, #8649; ChainSafe/lodestar#6484",
        ),
        Quirk(
            "rewards-from-cached-states",
            "Lodestar",
            "rewards are computed from states in the cache only",
            "probe",
            "rewards of old epochs are computed from SSZ states",
            "ChainSafe/lodestar#6484",
        ),
        Quirk(
            "sync-reward-is-balance",
            "Lodestar v1.38.0",
            "sync committee rewards are the balance of the validator",
            "refused",
            "no reward of one block can be above 1 ETH",
            "ChainSafe/lodestar#8718",
        ),
        Quirk(
            "old-genesis",
            "Lodestar v1.5.1",
            "restarted with --reset and a new genesis time, the node keeps the old genesis",
            "refused",
            "genesis time and root in a state must equal those of the genesis route",
            "measured: recordings of this client",
        ),
        Quirk(
            "rewards-fail-above-32-eth",
            "Lighthouse before v7.0.0",
            "attestation rewards are 500 once an effective balance is above 32 ETH",
            "refused",
            "rewards are computed from SSZ states; update the client",
            "sigp/lighthouse#6818",
        ),
        Quirk(
            "no-inactivity",
            "Lighthouse before v4.5.0, Teku until the end of 2023",
            "attestation rewards have no inactivity penalty",
            "refused",
            "a row without this field is an error",
            "sigp/lighthouse#4512, Consensys/teku#7553",
        ),
        Quirk(
            "rewards-need-last-slot",
            "Teku v2.36.0",
            "attestation rewards are 404 if the last slot of the next epoch has no block",
            "refused",
            "rewards are computed from SSZ states; update the client",
            "Consensys/teku#7338",
        ),
        Quirk(
            "rewards-one-epoch-off",
            "Prysm, first version of the route",
            "attestation rewards are those of the next epoch",
            "reconciliation",
            "the balances of the epoch do not agree",
            "OffchainLabs/prysm#12480",
        ),
        Quirk(
            "slow-states",
            "Prysm",
            "an old state is regenerated from a stored one, which takes minutes",
            "avoided",
            "requests for states and rewards may take ten minutes",
            "OffchainLabs/prysm#5851, #12180",
        ),
        Quirk(
            "sync-aggregate-of-one-vote",
            "Nimbus until January 2025",
            "the proposer's reward for sync committee votes is that of a single vote",
            "reconciliation",
            "the balances of the epoch do not agree",
            "status-im/nimbus-eth2#6810",
        ),
        Quirk(
            "duplicate-sync-rewards",
            "Nimbus",
            "a validator with several seats has several rows, each with a part of the reward",
            "corrected",
            "the rows of one validator are added up",
            "status-im/nimbus-eth2#7452",
        ),
        Quirk(
            "null-inclusion-delay",
            "any",
            "inclusion_delay is null or missing since Altair",
            "avoided",
            "the field is not used",
            "ethereum/beacon-APIs#340",
        ),
        Quirk(
            "positive-inactivity",
            "Nimbus, development versions",
            "the inactivity penalty is a positive number",
            "refused",
            "a positive inactivity penalty is an error",
            "status-im/nimbus-eth2#8649",
        ),
        Quirk(
            "ssz-without-version",
            "Lodestar v1.5.1",
            "SSZ answers have no Eth-Consensus-Version header",
            "avoided",
            "the fork is read from the state itself",
            "measured: recordings of this client",
        ),
        Quirk(
            "comma-topics",
            "Lodestar v1.5.1",
            "events?topics=a,b never answers",
            "avoided",
            "topics are sent as repeated topics=",
            "measured: recordings of this client",
        ),
        Quirk(
            "reorganization",
            "any",
            "the chain of the head changes between two requests",
            "refused",
            "only finalized slots are stored; an answer for another slot is an error",
            "by design of the chain",
        ),
    )
}
