"""The parts that windows are made of: predicates, the layout of states, groups, global states."""
