"""The end of a connection to the broker."""

from support.ending_client import ending_client
from whenabouts_cloud.broker.connection import stop_loop


def test_the_end_of_a_connection_does_not_fail_if_its_thread_ends_at_that_moment():
    stop_loop(ending_client())
