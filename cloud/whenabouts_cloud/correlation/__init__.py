"""Which pairs of readings from two streams happened within d of each other with probability at least ct.

`condition` says what that means and what can never match, `kernel` finds all pairs of two sets of intervals, `pairs` turns
them into result rows, `online` does the same for readings that arrive bit by bit. Nothing here knows Spark, files or clocks.
"""
