"""The papers' algorithms, corrected, and their experiments, for comparison with the product."""
