"""Rules as Spark jobs: their input, one query a rule, and what runs them."""
