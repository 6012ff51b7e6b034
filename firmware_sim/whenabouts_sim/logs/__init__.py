"""Log files in the formats of other systems, made from a seed, with the truth beside them."""
