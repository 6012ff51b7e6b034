"""On the board's VM and here: replay packets and ticks from a file, print each result as one line of JSON.

A line of the file: ["ticks", period, [raw, ...]] or ["sntp", [[packet, cookie, sent_us, received_us], ...], [moments]].
"""

import json
import sys

from whenabouts_edge.board.machine.ticks import Ticks
from whenabouts_edge.board.sntp import Clock, SntpError, parse


def replay(case):
    """The unwrapped values; or the result of each packet, then stamps and states at the moments."""
    if case[0] == "ticks":
        ticks = Ticks(case[1])
        return [ticks.at(raw) for raw in case[2]]
    clock, results = Clock(), []
    for packet, cookie, sent_us, received_us in case[1]:
        try:
            sample = parse(bytes.fromhex(packet), bytes.fromhex(cookie), sent_us, received_us)
        except SntpError as error:
            results.append(str(error))
            continue
        clock.take(sample)
        results.append([sample.host_us, sample.offset_us, sample.bound_us])
    for moment in case[2]:
        results.append([list(clock.to_utc(moment, moment + 5)), clock.state(moment), clock.bound_us(moment)])
    results.append(clock.contradictions)
    return results


if __name__ == "__main__":
    with open(sys.argv[1]) as lines:
        for line in lines:
            print(json.dumps(replay(json.loads(line))))
