"""A pattern of events as a value, its compilation to tables, and a picture of its automaton."""
