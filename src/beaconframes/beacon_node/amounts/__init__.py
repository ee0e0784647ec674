"""What validators earn in an epoch: from states, from the rewards routes, or from blocks."""
