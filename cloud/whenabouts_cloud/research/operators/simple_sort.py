"""`simple_sort`: the Simple-Sort correlation of 2009, Section 5 (2010, Section 4.2, below Algorithm 1).

As `simple`, with the buffers in the order of the maxima: obsolete tuples stand together at the front, none waits behind
one that is still needed, so less is held and compared.
"""

from whenabouts_cloud.research.operators.simple import Simple


class SimpleSort(Simple):
    """Compare with everything that is not obsolete."""

    name = "simple_sort"
    _sorted = True
