"""Daemon from which a session on this machine forks its Python workers; it imports the jobs' modules before forking.

Spark's own daemon imports nothing, because a fork lacks the threads that an import starts. So each worker spends more than a
second of a core on importing pandas, pyarrow and numba, and Spark starts new workers after every pause of a minute. Here the
only import that starts a thread is configured not to. Workers collect garbage after every task; the imported objects are
frozen, so that the collector skips them.

A cluster uses Spark's own daemon: the packages shipped with a job arrive after the daemon has started.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

WITHOUT_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # pyarrow's, before it is imported
JOBS = ("batch", "streaming", "engines.correlate", "engines.cep", "engines.latwin", "reading.source")


def prepare() -> None:
    """Import the modules of the jobs, so that forks of this process need not."""
    os.environ.update(WITHOUT_THREADS)
    with suppress(ImportError):  # a worker that needs the module raises the error
        for name in ("pyspark.worker", *(f"whenabouts_cloud.jobs.{job}" for job in JOBS)):
            import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    daemon.manager()
