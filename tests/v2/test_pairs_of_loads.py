"""Two loads on one connection: what the first one learns of the head serves the second one."""

from __future__ import annotations

import inspect
import itertools
import warnings

import pytest

import beaconframes as bf
from beaconframes import errors, v2
from beaconframes.server.service import Service

from ..support.replicas import ServiceTransport, connect_to

LOADERS = [name for name in v2.__all__ if name.startswith("load_")]
OF_EPOCHS = ["load_balances", "load_rewards", "load_performance"]
OF_SLOTS = [name for name in LOADERS if name.endswith("_slots") and "upcoming" not in name]
OF_FINAL = ["load_rewards", "load_performance", "load_slot_attestation_duties"]
"""Loaders of final epochs and slots only."""
FEW = ["load_balances", "load_rewards", "load_attestation_slots", "load_state"]
"""Loaders after which the latest slot, the finalized slot, both, or neither are known."""
HEAD_EPOCH = 469


def call(name, explorer, back=None):
    """Return the rows of a call of the loader, or the message of its error.

    What it loads is of *back* epochs before the head, or the latest.
    """
    loader = getattr(bf.v2, name)
    given = {"validators": [1, 2], "entity": "Fyrlykt", "slots": "latest"}
    if back is not None:
        epoch = HEAD_EPOCH - back
        slot = epoch * 32 + 3
        given |= {"slots": [slot], "blocks": [slot - 100], "periods": [epoch // 256]}
        if name in OF_EPOCHS:
            given |= {"since": epoch - 1, "until": epoch}
        elif name in OF_SLOTS:
            given |= {"since": slot - 32, "until": slot}
    arguments = inspect.signature(loader).parameters.keys() & given.keys()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MissingRows)
        try:
            return loader(**{name: given[name] for name in arguments}, explorer=explorer)
        except (errors.UsageError, errors.NotFound) as error:
            return error.message


@pytest.fixture(scope="module", params=["spec", pytest.param("public", marks=pytest.mark.more)])
def transport(chain, request):
    """A service in this process, which has answered the slow first queries once for all tests."""
    return ServiceTransport(Service(chain, wire=request.param))


@pytest.mark.more
@pytest.mark.parametrize(
    "back", [300, *(pytest.param(back, marks=pytest.mark.more) for back in (0, 8))]
)
@pytest.mark.parametrize(
    ("firsts", "seconds"),
    [
        pytest.param(FEW, [*OF_EPOCHS, "load_proposal_slots"], id="few"),
        pytest.param(LOADERS, LOADERS, id="all", marks=pytest.mark.long),
    ],
)
def test_a_load_does_not_depend_on_an_earlier_one(transport, back, firsts, seconds):
    """C6: what the first load of a connection learns of the head refuses nothing that exists.

    What is final only is refused for the latest epoch.
    """
    alone = {name: call(name, connect_to(transport), back) for name in seconds}
    refused = {name: rows for name, rows in alone.items() if isinstance(rows, str)}
    expected = [name for name in seconds if name in OF_FINAL] if back == 0 else []
    assert expected == list(refused)
    assert all(
        "epoch 469 is in the future: the service has epochs up to 467" == message
        or "is greater than latest finalized slot" in message
        for message in refused.values()
    )

    differing = []
    for first, second in itertools.product(firsts, seconds):
        explorer = connect_to(transport)
        call(first, explorer)
        rows, wanted = call(second, explorer, back), alone[second]
        is_equal = rows == wanted if second in refused else wanted.equals(rows)
        differing += [] if is_equal else [(first, second)]

    assert [] == differing
