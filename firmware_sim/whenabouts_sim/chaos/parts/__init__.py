"""The product's processes in a simulation: each runs the product's own code."""
