"""Results are those of the definition of their rule: pairs, and events in an order."""
