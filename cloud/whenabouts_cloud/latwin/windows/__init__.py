"""Windows over the states of a group: the ring of clocks, the lattice, and the walks through it."""
