"""Whether a job failed because a file that it had listed was merged or deleted before a task read it."""

import re

from whenabouts_cloud.jobs.output.left_out import UNREADABLE
from whenabouts_cloud.landing.store import Store

NAMED = re.compile(rf"{UNREADABLE}: (.+?): found ")  # as `landing.scan` names a file


def names_gone(landing: Store, failure: str) -> bool:
    """True if what Spark tells of a failure names a file of the landing that is not there any more.

    Raises:
        OSError: an object store does not answer.
    """
    return None in landing.sizes(NAMED.findall(failure))
