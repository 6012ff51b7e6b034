"""The papers' algorithms, corrected, and their experiments, to compare the product with."""
