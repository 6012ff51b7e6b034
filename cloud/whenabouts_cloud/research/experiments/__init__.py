"""The papers' experiments, run again on this machine with the operators of `correlation.operators`.

`workload` makes the streams, `simulate` runs an operator over one in simulated time, `correlation` has the figures of both
papers with what they show here, `report` writes tables and plots.
"""
