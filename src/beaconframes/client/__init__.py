"""The only package that touches the network."""

from beaconframes.client.connected import connect, use
from beaconframes.client.explorer import Explorer
from beaconframes.client.loading import Options, Subjects, load
from beaconframes.client.plan import Plan, plan
from beaconframes.client.stored import Store, store

__all__ = [
    "Explorer",
    "Options",
    "Plan",
    "Store",
    "Subjects",
    "connect",
    "load",
    "plan",
    "store",
    "use",
]
