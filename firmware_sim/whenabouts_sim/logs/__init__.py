"""Log files as readers of others write them, made from a seed, with what truly happened beside them."""
