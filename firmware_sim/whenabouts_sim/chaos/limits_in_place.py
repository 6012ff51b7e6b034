"""The limits of a schedule, in place of those that none reaches."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from whenabouts_cloud import durable
from whenabouts_cloud.ingest import bridge, landing_writer
from whenabouts_cloud.jobs.output import task_files
from whenabouts_edge.agent import agent, timekeeping
from whenabouts_edge.readers import thread
from whenabouts_edge.store import intake, undated
from whenabouts_edge.uplink import outbox
from whenabouts_protocol import layout
from whenabouts_sim.chaos.machine.room import THREADING
from whenabouts_sim.chaos.schedule.schedule import Schedule


@contextmanager
def limited(schedule: Schedule) -> Iterator[None]:
    """The product's modules with the limits that the schedule has."""
    with ExitStack() as stack:
        for module, name, limit in (
            (outbox, "MAX_UNLANDED", schedule.most_unlanded),
            (landing_writer, "SNAPSHOT_EVERY", schedule.snapshot_every),
            (task_files, "FEW", schedule.few_rows),
            (intake, "MAX_BATCH", schedule.most_in_batch),
            (layout, "MAX_MESSAGE_BYTES", schedule.message_bytes),
            (intake, "MAX_WAITING", schedule.most_waiting),
            (agent, "MAX_WAITING", schedule.most_waiting),
            (timekeeping, "MAX_WAITING", schedule.most_waiting),
            (agent, "CLOCK_EVERY_S", schedule.clock_s),
            (bridge, "FRONTIER_EVERY_US", schedule.frontier_us),
            (undated, "KEPT_US", schedule.undated_us),
            (undated, "LIMIT", schedule.most_undated),
            (thread, "MAX_WAITING", schedule.most_waiting),
            # What is dated at once must be less than what may wait, as with the usual limits.
            (undated, "AT_ONCE", schedule.most_waiting // 2),
            (intake, "threading", THREADING if schedule.most_waiting else None),
        ):
            if limit:
                stack.enter_context(patch.object(module, name, limit))
        stack.enter_context(patch.object(durable, "_named", set()))  # that a schedule repeats itself
        yield
