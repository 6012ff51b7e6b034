"""A pattern of events as a value, its compilation to tables, and the automaton of it as a picture."""
