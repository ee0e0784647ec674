"""The only package that touches the network."""

from beaconframes.client.connected import connect, quota, use
from beaconframes.client.explorer import Explorer
from beaconframes.client.loading import Options, Subjects, load
from beaconframes.client.plan import Plan, plan
from beaconframes.client.quota import Quota
from beaconframes.client.store import Store, store

__all__ = [
    "Explorer",
    "Options",
    "Plan",
    "Quota",
    "Store",
    "Subjects",
    "connect",
    "load",
    "plan",
    "quota",
    "store",
    "use",
]
