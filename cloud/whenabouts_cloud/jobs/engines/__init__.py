"""The engines as Spark jobs see them: which readings a rule needs, as which tables, in which shards."""
