"""Global conditions over gateways whose clocks do not agree: the lattice of consistent global states of a window."""
