"""Detection of a conjunction of local predicates, without a lattice."""
