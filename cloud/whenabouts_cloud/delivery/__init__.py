"""Delivers published results to where people are: databases, tables, brokers, webhooks.

The output folder stays the record, and a target is only ever given what is published there:

    OUT/batch=00000012/         results, published by the job (`jobs.output.sink`)
    OUT/_delivered/series.json  the series that the batches of OUT belong to: a name that no other folder has
    OUT/_delivered/ID.json      cursor of a target: its newest batch that is delivered

A thread for each target (`courier`) delivers batches in the order of their numbers (`published`) and then moves the cursor.
So a slow or absent target delays neither the query nor other targets, and loses nothing. A batch is repeated if the process
ends between the two: PostgreSQL and Delta store series and number with the results and skip it; brokers and webhooks get
the results again with the same `result_id`.

Targets are chosen by URI (`targets`). Other packages add some by the entry point group `whenabouts.sinks`.
"""
