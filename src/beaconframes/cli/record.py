"""``beaconframes record``: store attestation duties before the service deletes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from beaconframes.cli.argument_texts import parse_numbers, parse_time
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.from_signature import AsJson, command
from beaconframes.cli.messages import print_warning
from beaconframes.cli.output import completeness_facts
from beaconframes.cli.rendering import print_json, print_table
from beaconframes.cli.runner import current_state


@command(*connection_options())
def record(
    what: Literal["attestations"],
    *,
    validators: Annotated[tuple[str, ...], "LIST"],
    until: Annotated[str | None, "TIME"] = None,
    for_: Annotated[str | None, "--for", "DURATION"] = None,
    slim: bool = False,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Store attestation duties before the service deletes them.

    The service has the duties of about ten hours. This command polls it, stores final duties, and
    ends at --until, after --for, or on Ctrl-C. Later, load attestations reads stored duties, for
    any range of epochs. The report at the end lists by validator which epochs are stored, absent
    (unknown to the service), pending (still served, but not stored yet), or lost (no longer
    served).

    Parameters
    ----------
    validators
        Indices or public keys, separated by commas; 1-100 is a range, - reads standard input.
    until
        Last epoch, or a future time; the default is to record until Ctrl-C.
    for_
        Duration of the recording, such as 7d, instead of --until.
    slim
        Omit committee_index, which halves the bytes.
    """
    from beaconframes.cli import signals
    from beaconframes.v1.recorder import record as record_duties

    subjects = parse_numbers("--validators", validators)
    end = None if until is None else parse_time("--until", until)
    with open_explorer(values) as explorer, signals.interrupt_on_first_signal() as received:
        rows = record_duties(what, subjects, until=end, for_=for_, slim=slim, explorer=explorer)
    state = current_state()
    missing = {name: int((rows["state"] == name).sum()) for name in ("pending", "lost")}
    state.incomplete = any(missing.values())
    if as_json:
        print_json({**completeness_facts(state), "rows": rows.height}, rows)
    else:
        print_table(rows, rows.height)
    if state.incomplete:
        print_warning(
            f"{missing['pending']:,} intervals of epochs are pending, {missing['lost']:,} are lost"
        )
    if received:
        raise signals.StoppedBySignal(128 + received[0])
