"""The correlation as Spark jobs: `session` and `java` start Spark, `batch` and `streaming` run a rule over a landing, `sink`
publishes results exactly once. Importing this package starts and imports nothing; take what you need from its modules.
"""
