"""The simulation of a chain: it runs the engine and writes the dataset."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.calendar import MAINNET, get_chain
from beaconframes.dataset import Dataset
from beaconframes.derive.attestation_efficiency import RATED_EPOCHS
from beaconframes.errors import DatasetError, UsageError
from beaconframes.progress import DELAY, show_epochs
from beaconframes.simulation_limits import MAXIMUM, MINIMUM
from beaconframes.simulator import derived, drawn_hex, head_tables, identities, tables, yield_index
from beaconframes.simulator.block_writer import BlockWriter
from beaconframes.simulator.derived.chain_data import ChainData
from beaconframes.simulator.derived.duties import AttestationCollector
from beaconframes.simulator.engine import Engine
from beaconframes.simulator.event_writer import EventWriter
from beaconframes.simulator.fees import FeeTable
from beaconframes.simulator.graffiti import GraffitiWriter
from beaconframes.simulator.history_writer import HistoryWriter
from beaconframes.simulator.preset import choose_preset, create_chain
from beaconframes.simulator.registry import create_registry
from beaconframes.time_range import instants

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Writer
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.time_range import Moment


def simulate(
    target: str | os.PathLike[str],
    *,
    validators: int = 2000,
    epochs: int = 1575,
    seed: int = 1,
    history_days: int = 0,
    chain: str | Chain | None = None,
    ends: Moment | None = None,
) -> Dataset:
    """Simulate a chain into a new dataset folder; the same arguments give the same bytes.

    Parameters
    ----------
    target
        The new folder. It is created only when the simulation is complete.
    validators
        The number of validators at the end; some of them deposit during the simulation.
    epochs
        The number of epochs to simulate in detail. A week has 1575.
    seed
        The seed of the random numbers.
    history_days
        Days of the yield index before the first detailed epoch, from a day-level model. The
        first detailed epoch is the first of the following day.
    chain
        The clock: a chain or its name. By default mainnet's clock, with the detailed epochs from
        30 September 2026 on. Sync committees exist from genesis.
    ends
        The time of the head: ``"now"``, a datetime, or a date for its last slot. Epochs then have
        the numbers that they have on the real chain, mainnet by default, so clients that compute
        epochs from its genesis find them. Attestation duties of all epochs are stored, instead of
        the last hundred, so that ``serve --live`` can show any epoch as the latest.

    Returns
    -------
    Dataset
        Its ``meta`` says ``simulated: true``.
    """
    arguments = {
        "validators": validators,
        "epochs": epochs,
        "history_days": history_days,
        "seed": seed,
    }
    check_arguments(arguments)
    if chain is None:
        clock = create_chain(history_days) if ends is None else MAINNET
    else:
        clock = get_chain(chain)
    if ends is None:
        clock = replace(clock, first_sync_epoch=0)
        first = history_days * clock.epochs_per_day
        size = clock.slots_per_epoch
        head = (first + epochs - 1) * size + size * 5 // 8
    else:
        head = find_slot(clock, ends)
        check_length(clock, head, epochs, history_days)
    folder = Path(target).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"{folder} already exists", hint="Choose a new or an empty folder")
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}.tmp")
    try:
        meta = {"service": "simulated", "simulated": True, **drawn_hex.state_columns(seed)}
        dataset = Dataset.create(draft, meta=meta)
        with dataset.writing() as writer:
            simulation = _Simulation(
                writer, clock, arguments, head, has_all_duties=ends is not None
            )
            with show_epochs("simulating", epochs, delay=DELAY) as count_epoch:
                simulation.run(count_epoch)
        with dataset.writing() as writer:
            data = ChainData(dataset, writer)
            yield_index.write_table(data, simulation.preset, simulation.fees.mean)
            derived.write_history_tables(data, simulation.attestation_collector)
        with dataset.writing() as writer:
            derived.write_head_tables(ChainData(dataset, writer))
        if folder.exists():
            folder.rmdir()  # it is empty, and some systems cannot replace an empty folder
        draft.replace(folder)
    except OSError as error:
        reason = error.strerror or error
        raise DatasetError(
            f"{folder} cannot be written: {reason}", hint="Choose a writable folder with free space"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Dataset.open(folder)


def check_arguments(arguments: Mapping[str, int]) -> None:
    """Raise UsageError for a size or a seed outside of the limits of simulations."""
    for name, value in arguments.items():
        if type(value) is not int or value < MINIMUM[name]:
            raise UsageError(
                f"{name}={value!r} is not valid",
                hint=f"Use an integer of {MINIMUM[name]} or more",
            )
        if value > MAXIMUM.get(name, value):
            raise UsageError(
                f"{name}={value:,} is too large",
                hint=f"Use an integer of {MAXIMUM[name]:,} or less",
            )


def find_slot(chain: Chain, moment: Moment) -> int:
    """Return the slot at a moment: ``"now"``, a datetime, an age, or the end of a date or month."""
    present = datetime.now(UTC)
    if moment == "now":
        return chain.at("slot", present)
    try:
        last = instants("ends", moment, lambda: present)[1]
    except UsageError:
        raise UsageError(
            f"ends={moment!r} is not a valid time",
            hint='Use "now", a date such as "2026-10-01", or a datetime',
        ) from None
    if last < chain.genesis:
        raise UsageError(
            f"ends={moment!r} is before the genesis of {chain.name}, "
            f"{chain.genesis:%Y-%m-%dT%H:%M:%SZ}",
            hint="Use a later time",
        )
    return chain.at("slot", last)


def check_length(chain: Chain, head: int, epochs: int, history_days: int) -> None:
    """Raise UsageError if a chain that ends at slot *head* starts before its genesis."""
    whole = head // chain.slots_per_epoch + 1
    if epochs + history_days * chain.epochs_per_day > whole:
        raise UsageError(
            f"epochs={epochs} and history_days={history_days} start before the genesis of "
            f"{chain.name}: it has {whole} epochs at that time",
            hint="Use fewer epochs or a later end",
        )


class _Simulation:
    """One run of the engine, which passes each epoch to the table writers."""

    def __init__(
        self,
        writer: Writer,
        chain: Chain,
        arguments: dict[str, int],
        head: int,
        *,
        has_all_duties: bool,
    ) -> None:
        """Write to *writer*; the chain ends at slot *head*."""
        self.writer, self.chain, self.arguments = writer, chain, arguments
        seed, validators, size = arguments["seed"], arguments["validators"], chain.slots_per_epoch
        self.last, self.head = divmod(head, size)  # latest slot of the running epoch
        self.first = self.last - arguments["epochs"] + 1
        self.registry, plan = create_registry(
            seed, validators, self.first, self.last, chain.epochs_per_day
        )
        stake = int(self.registry.effective[: self.registry.validator_count].sum())
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
        slots = (arguments["epochs"] - 1) * size + self.head + 1
        self.history_writer = HistoryWriter(writer, chain, validators, self.finalized)
        first_duties = self.first - 1 if has_all_duties else self.last - RATED_EPOCHS
        self.attestation_collector = AttestationCollector(chain, max(first_duties, self.first - 1))
        self.block_writer = BlockWriter(
            writer,
            chain,
            GraffitiWriter(seed, self.first * size, slots),
            seed=seed,
            recipients=identities.make_operator_addresses(seed, validators),
            deposit_count=self.registry.validator_count,
            first_slot=self.first * size,
            counted_from=self.attestation_collector.counted_from,
        )
        self.epoch_rows: list[dict[str, Any]] = []
        self.event_writer = EventWriter(writer, chain, self.finalized)

    def run(self, count_epoch: Callable[[], None]) -> None:
        """Write all tables; call *count_epoch* after each epoch."""
        for name, schema in tables.SCHEMAS.items():
            self.writer.add(name, schema.to_frame())
        for epoch in self.engine.run():
            self.history_writer.add(epoch)
            self.block_writer.add(epoch)
            self.epoch_rows.append(
                head_tables.build_epoch_row(epoch, latest=self.last, finalized=self.finalized)
            )
            self.event_writer.add(epoch)
            self.attestation_collector.add(epoch)
            count_epoch()
        for writer in (self.history_writer, self.event_writer):
            writer.flush()
        self.block_writer.flush(self.attestation_collector.count_votes())
        self._finish(epoch)

    def _finish(self, head: Epoch) -> None:
        chain, seed, count = self.chain, self.arguments["seed"], self.arguments["validators"]
        rows = {name: [row[name] for row in self.epoch_rows] for name in self.epoch_rows[0]}
        self.writer.add("epochs", tables.build_frame("epochs", rows, chain=chain))
        self.writer.add("sync_committees", self._build_sync_committees())
        self.writer.add(
            "validators",
            head_tables.build_validators(
                self.registry,
                head,
                pubkeys=identities.make_pubkeys(seed, count),
                credentials=identities.make_credentials(seed, self.registry.prefix),
                names=identities.make_names(count),
            ),
        )
        slot = self.last * chain.slots_per_epoch + self.head
        self.writer.add(
            "latest_state", head_tables.build_latest_state(chain, head, slot, self.finalized)
        )
        self.writer.set_meta(
            {
                "chain": {**asdict(chain), "genesis": chain.genesis.isoformat()},
                "preset": asdict(self.preset),
                **self.arguments,
                "first_epoch": self.first,
                "latest_epoch": self.last,
                "finalized_epoch": self.finalized,
                "latest_slot": slot,
            }
        )

    def _build_sync_committees(self) -> pl.DataFrame:
        """Return the committees of all periods with detailed epochs, and of the next period."""
        epochs_per_period = self.chain.epochs_per_sync_period
        periods = range(self.first // epochs_per_period, self.last // epochs_per_period + 2)
        seats = np.arange(self.chain.sync_committee_size)
        size = len(seats)
        numbers = np.repeat(np.array(periods), size)
        return tables.build_frame(
            "sync_committees",
            {
                "period": numbers,
                "seat": np.tile(seats, len(periods)),
                "validator_index": np.concatenate([self.engine.committee(p) for p in periods]),
                "start_epoch": numbers * epochs_per_period,
                "end_epoch": (numbers + 1) * epochs_per_period - 1,
            },
        )
