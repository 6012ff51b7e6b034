"""Why a rule has no result around a time, from what has landed; without Spark."""
