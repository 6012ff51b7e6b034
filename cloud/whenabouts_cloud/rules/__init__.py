"""The rule language: what users write, checked as a whole, as values that engines take."""
