"""Whether all local predicates of a conjunction held together, without a lattice."""
