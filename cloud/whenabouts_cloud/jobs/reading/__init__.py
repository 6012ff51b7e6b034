"""The tasks that read a landing: the data source of jobs, and what they hand on as packed rows."""
