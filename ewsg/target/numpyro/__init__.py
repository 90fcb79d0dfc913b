"""NumPyro models as targets: read, split into prior and rows, and verified."""
