"""On the board's VM: replay the inputs of a gateway's group process, or measure the memory it holds.

argv: `replay FILE` or `keep MEMBERS STATES`. A case of the file is a line {"gateway", "boot", "peers", "clock_heartbeat_us",
"conditions": [[kind, arguments], ...]}, a line [method, arguments] for each call, and ["end", []]; payloads are hexadecimal.
"""

import gc
import json
import sys

from whenabouts_edge.group.conditions import Presence, Threshold
from whenabouts_edge.group.detection import Detection
from whenabouts_edge.group.process import GroupProcess
from whenabouts_protocol.group_state import attrs_of
from whenabouts_protocol.messages.batch import encode_batch
from whenabouts_protocol.reading import Reading

KINDS = {"presence": Presence, "threshold": Threshold}


def replay(lines):
    """Result of each call, and the counters at the end of each case."""
    detection = process = calls = None
    for line in lines:
        row = json.loads(line)
        if isinstance(row, dict):
            detection = Detection([KINDS[kind](*arguments) for kind, arguments in row["conditions"]])
            process = GroupProcess(
                "office", row["gateway"], row["boot"], row["peers"], detection, row["clock_heartbeat_us"]
            )
            calls = {
                "observe": process.observe, "advance": process.advance, "born": process.born, "stopped": process.stopped,
                "removed": process.removed, "receive": process.receive,
            }  # fmt: skip
            continue
        method, arguments = row
        if method == "end":
            yield [process.views, process.merged, sorted(process.counters.items()), detection.unsure]
            continue
        if method == "receive":
            arguments[2] = bytes.fromhex(arguments[2])
        result = calls[method](*arguments)
        if method == "advance":
            result = [
                [r.view, r.process, list(r.clock), r.earliest_us, r.latest_us, r.is_heartbeat, sorted(r.values.items())]
                for r in result
            ]
        elif method == "receive":
            result = None if result is None else [result.reason, str(result)]
        yield result


def keep(members, states):
    """Print heap bytes that the process of the last of so many members holds after so many states of each of the others.

    An iterator: a simulated board collects memory only between its steps.
    """
    names = [f"g{n:02d}" for n in range(members)]
    gc.collect()
    yield
    before = gc.mem_alloc()
    detection = Detection([Presence("here", "tags", None, 1, 1000000)])
    process = GroupProcess("office", names[-1], 7, names[:-1], detection, 0)
    for name in names[:-1]:
        process.born(name, 7, "office", 0)
    process.advance(0, 0)
    [first] = process.advance(1, 2000000)
    reported = 0
    for number in range(1, states + 1):
        for at in range(members - 1):
            clock = [number - 1] * members
            clock[at], clock[-1] = number, 0
            state = Reading(
                site="hall", gateway=names[at], boot=7, seq=number, stream="s", kind="state", t_min=0, t_max=1,
                attrs=attrs_of("office", first.view, at, {"here": True}), vclock=clock,
            )  # fmt: skip
            now_us = 2000000 + number * 1000 + at
            process.receive("hall", names[at], encode_batch([state]), now_us)
            process.observe("tags", "E1", None, {}, now_us - 40, now_us)
            reported += len(process.advance(now_us - 50, now_us))
        gc.collect()
        yield
    held, free = gc.mem_alloc() - before, gc.mem_free()
    print(json.dumps({"held": held, "free": free, "reported": reported, "merged": process.merged}))


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        program = keep(int(sys.argv[2]), int(sys.argv[3]))
        if sys.platform != "webassembly":  # a simulated board asks for the steps itself
            for _ in program:
                pass
    else:
        with open(sys.argv[2]) as lines:
            for result in replay(lines):
                print(json.dumps(result))
                gc.collect()
