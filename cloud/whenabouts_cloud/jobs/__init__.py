"""Rules as Spark jobs: one adapter for streams, one for whole landings, and the interface that each engine implements."""
