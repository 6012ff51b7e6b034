"""The probability of a verdict, when stamps bound the order of states."""
