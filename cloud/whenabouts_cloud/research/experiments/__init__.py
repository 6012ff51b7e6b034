"""The papers' experiments, repeated on this machine with the operators of `research.operators`.

`workload` makes the streams, `simulate` runs an operator over one in simulated time, `correlation` makes the figures of
both papers with remarks on the results here, `figures` writes tables and plots.
"""
