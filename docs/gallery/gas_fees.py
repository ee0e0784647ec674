"""Gas fees by waiting time."""

import beaconframes as bf

with bf.open():
    fees = bf.load_gas_fees()

ax = bf.plot.gas_fees(fees)
figure = bf.interactive.gas_fees(fees)
