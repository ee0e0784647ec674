"""From arguments to a dataset."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.calendar import get_chain
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.simulator import derived, identities, snapshot, tables, yields
from beaconframes.simulator import registry as people
from beaconframes.simulator.blocks import Blocks
from beaconframes.simulator.derived.duties import Votes
from beaconframes.simulator.derived.source import Source
from beaconframes.simulator.engine import Engine
from beaconframes.simulator.event_tables import EventTables
from beaconframes.simulator.fees import FeeTable
from beaconframes.simulator.histories import Histories
from beaconframes.simulator.mural import Mural
from beaconframes.simulator.preset import choose_preset, simulated_chain

if TYPE_CHECKING:
    import os

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch

_LEAST = {"validators": 50, "epochs": 8, "history_days": 0, "seed": 0}


def simulate(
    target: str | os.PathLike[str],
    *,
    validators: int = 2000,
    epochs: int = 1575,
    seed: int = 1,
    history_days: int = 0,
    chain: str | Chain | None = None,
) -> Dataset:
    """Simulate a whole chain into a new dataset folder; same arguments, same bytes.

    Parameters
    ----------
    target
        The folder to make. It appears when it is complete: an interrupted simulation leaves none.
    validators
        How many validators there are in the end; some of them deposit on the way.
    epochs
        How many epochs are simulated in detail. A week is 1575.
    seed
        What chance begins with.
    history_days
        Days of the yield index before the first detailed epoch, from a day-level model. The
        detailed epochs then begin on that day.
    chain
        The clock: a chain or its name; left out, mainnet's with the detailed epochs from
        30 September 2026 on. It has sync committees from its genesis.

    Returns
    -------
    Dataset
        Its ``meta`` says ``simulated: true``.
    """
    given = {"validators": validators, "epochs": epochs, "history_days": history_days, "seed": seed}
    for name, value in given.items():
        if type(value) is not int or value < _LEAST[name]:
            raise UsageError(f"{name}={value!r} is no whole number from {_LEAST[name]} up")
    clock = simulated_chain(history_days) if chain is None else get_chain(chain)
    clock = replace(clock, first_sync_epoch=0)
    folder = Path(target).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"{folder} exists already", hint="Choose a folder that is new or empty")
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}.tmp")
    try:
        dataset = Dataset.create(draft, meta={"service": "simulated", "simulated": True})
        with dataset.writing() as writer:
            simulation = _Simulation(writer, clock, given)
            simulation.run()
        with dataset.writing() as writer:
            derived.write(Source(dataset, writer), simulation.votes)
        if folder.exists():
            folder.rmdir()  # empty: an empty folder may be given, and not every system replaces it
        draft.replace(folder)
    except OSError as error:
        reason = error.strerror or error
        raise DatasetError(f"{folder} cannot be written: {reason}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Dataset.open(folder)


class _Simulation:
    """One run: the engine turns, collectors listen."""

    def __init__(self, writer: Writer, chain: Chain, given: dict[str, int]) -> None:
        self.writer, self.chain, self.given = writer, chain, given
        seed, validators, size = given["seed"], given["validators"], chain.slots_per_epoch
        self.first = given["history_days"] * chain.epochs_per_day
        self.last = self.first + given["epochs"] - 1
        self.head = size * 5 // 8  # the running epoch has come this far
        self.registry, plan = people.populate(
            seed, validators, self.first, self.last, chain.epochs_per_day
        )
        stake = int(self.registry.effective[: self.registry.known].sum())
        self.preset = choose_preset(chain, stake)
        self.fees = FeeTable(stake)
        self.finalized = self.last - self.preset.finality_distance
        self.engine = Engine(
            seed,
            chain,
            self.preset,
            self.registry,
            plan,
            first=self.first,
            last=self.last,
            head=self.head,
            fees=self.fees,
        )
        slots = (given["epochs"] - 1) * size + self.head + 1
        self.histories = Histories(writer, chain, validators, self.finalized)
        self.votes = Votes(chain, self.last)
        self.blocks = Blocks(
            writer,
            chain,
            Mural(seed, self.first * size, slots),
            seed=seed,
            recipients=identities.operator_addresses(seed, validators),
            deposits=self.registry.known,
            first_number=self.first * size,
            counted_from=self.votes.counted_from,
        )
        self.days = yields.Days(chain, self.registry, self.finalized)
        self.overviews: list[dict[str, Any]] = []
        self.events = EventTables(writer, chain, self.finalized)

    def run(self) -> None:
        """Write all tables."""
        for name, schema in tables.SCHEMAS.items():
            self.writer.add(name, schema.to_frame())
        for epoch in self.engine.run():
            self.histories.add(epoch)
            self.blocks.add(epoch)
            self.days.add(epoch)
            self.overviews.append(
                snapshot.epoch_row(epoch, latest=self.last, finalized=self.finalized)
            )
            self.events.add(epoch)
            self.votes.add(epoch)
        for collector in (self.histories, self.events):
            collector.flush()
        self.blocks.flush(self.votes.counts())
        self._finish(epoch)

    def _finish(self, head: Epoch) -> None:
        chain, seed, count = self.chain, self.given["seed"], self.given["validators"]
        rows = {name: [row[name] for row in self.overviews] for name in self.overviews[0]}
        self.writer.add("epochs", tables.frame("epochs", rows, chain=chain))
        self.writer.add("sync_committees", self._committees())
        self.writer.add(
            "validators",
            snapshot.validators(
                self.registry,
                head,
                pubkeys=identities.pubkeys(seed, count),
                credentials=identities.credentials(seed, self.registry.prefix),
                names=identities.names(count),
            ),
        )
        past = yields.past(
            seed,
            self.given["history_days"],
            *self.days.beginning,
            preset=self.preset,
            mean_fee=self.fees.mean,
            chain=chain,
        )
        self.writer.add("yield_index", yields.index([*past, *self.days.days], chain))
        slot = self.last * chain.slots_per_epoch + self.head
        self.writer.add("latest_state", snapshot.latest_state(chain, head, slot, self.finalized))
        self.writer.set_meta(
            {
                "chain": {**asdict(chain), "genesis": chain.genesis.isoformat()},
                "preset": asdict(self.preset),
                **self.given,
                "first_epoch": self.first,
                "latest_epoch": self.last,
                "finalized_epoch": self.finalized,
                "latest_slot": slot,
            }
        )

    def _committees(self) -> pl.DataFrame:
        """Return the committees of every period that the detail touches, and the next one."""
        per = self.chain.epochs_per_sync_period
        periods = range(self.first // per, self.last // per + 2)
        seats = np.arange(self.chain.sync_committee_size)
        size = len(seats)
        numbers = np.repeat(np.array(periods), size)
        return tables.frame(
            "sync_committees",
            {
                "period": numbers,
                "seat": np.tile(seats, len(periods)),
                "validator_index": np.concatenate([self.engine.committee(p) for p in periods]),
                "start_epoch": numbers * per,
                "end_epoch": (numbers + 1) * per - 1,
            },
        )
