"""The faults of beacon nodes that `BeaconNodeStub` can plant, by name.

Each class names the client and the evidence. Stdlib only; a fault sees each request before it is
answered (`refuse`) and each answer before it is sent (`change`).
"""

from __future__ import annotations


class Fault:
    """A fault: `refuse` answers instead of the node, `change` alters an answer."""

    name = ""

    def refuse(self, node, request):
        """Return an answer that replaces the node's own, or None."""

    def change(self, node, request, answer):
        """Return the answer to send."""
        return answer


FAULTS = {}
