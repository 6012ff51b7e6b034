"""Sliding windows over the states of a group of processes without a common clock: which global states were possible.

After Yang, Huang, Cao, Ma, Lu, "Design of a Sliding Window over Asynchronous Event Streams" (arXiv 1111.3022, 2011).
"""
