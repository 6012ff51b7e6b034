"""Rules as Spark jobs: one adapter for streams and one for whole landings, and what each engine wants of them."""
