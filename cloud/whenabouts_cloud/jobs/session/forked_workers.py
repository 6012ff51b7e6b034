"""The process that the Python workers of a session on this machine are forked from: it has imported what jobs run.

The one that comes with Spark imports nothing, as threads that an import starts would be missing in what is forked. So each
worker spends more than a second of a core on pandas, pyarrow and numba, and Spark starts new ones after every pause of a
minute. Here the only import that starts a thread is told not to. Workers look for garbage after every task; what is
imported is frozen, so they do not look through all of it each time.

On a cluster Spark's own is used: the packages that are shipped with a job come later than the process.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

WITHOUT_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # pyarrow's, before it is imported
JOBS = ("batch", "streaming", "correlate", "cep", "latwin")


def prepare() -> None:
    """Import what jobs run, so that forks of this process need not."""
    os.environ.update(WITHOUT_THREADS)
    with suppress(ImportError):  # a worker that needs it says so
        for name in ("pyspark.worker", *(f"whenabouts_cloud.jobs.{job}" for job in JOBS)):
            import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    daemon.manager()
