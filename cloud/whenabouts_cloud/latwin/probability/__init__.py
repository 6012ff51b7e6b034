"""How probable a verdict is, when stamps bound the order of states."""
