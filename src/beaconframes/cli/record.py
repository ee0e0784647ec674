"""``beaconframes record``: store attestation duties before the service deletes them."""

from __future__ import annotations

from typing import Any, Literal

from beaconframes.cli import signals
from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.from_signature import command, list_arguments
from beaconframes.cli.messages import print_warning
from beaconframes.cli.output import completeness_facts
from beaconframes.cli.rendering import list_lines, print_result
from beaconframes.cli.runner import current_state
from beaconframes.v1.recorder import record as record_duties


@command(*connection_options(), arguments=list_arguments(record_duties, ["what"]))
def record(arguments: dict[str, Any], what: Literal["attestations"], **values: Any) -> None:
    """Store attestation duties before the service deletes them.

    The service has the duties of about ten hours. This command polls it, stores final duties, and
    ends at --until, after --for, or on Ctrl-C. Later, load attestations reads stored duties, for
    any range of epochs. The report at the end lists by validator which epochs are stored, absent
    (unknown to the service), pending (still served, but not stored yet), or lost (no longer
    served).
    """
    signals.prepare_stop(has_report=True)
    with open_explorer(values) as explorer:
        rows = record_duties(what, **arguments, explorer=explorer)
    state = current_state()
    missing = {name: int((rows["state"] == name).sum()) for name in ("pending", "lost")}
    state.incomplete = any(missing.values())
    print_result({**completeness_facts(state), "rows": rows.height}, list_lines(rows), rows)
    if state.incomplete:
        print_warning(
            f"{missing['pending']:,} intervals of epochs are pending, {missing['lost']:,} are lost"
        )
    if signals.is_stopped():
        raise KeyboardInterrupt
