"""Duties of three validators: the last day, seats in the sync committee, and next proposals."""

import beaconframes as bf

validators = [2, 446, 450]
with bf.open():
    votes = bf.load_attestations(validators, since="24h")
    upcoming = bf.v2.load_upcoming_duty_slots(validators)
    period = votes["epoch"].max() // 256
    committees = bf.load_sync_committees([period, period + 1])

ax = bf.plot.duties(votes, upcoming, committees)
figure = bf.interactive.duties(votes, upcoming, committees)
