"""Runs on the board's VM and here: replay calls of a Stamper from a file, print each result as one line of JSON.

A line of the file: {"args": of the Stamper, "calls": [[method, arguments], ...]}. An error is printed as its text.
"""

import json
import sys

from whenabouts_edge.readers.stamp import Stamper


def replay(case):
    """The results of all calls; a narrowed call takes the window that the call before gave."""
    stamper = Stamper(*case["args"])
    methods = {
        "arrived": stamper.arrived,
        "forget": stamper.forget,
        "pending_since": stamper.pending_since,
        "window": stamper.window,
        "cycle_started": stamper.cycle_started,
    }
    results = []
    window = None
    for method, arguments in case["calls"]:
        try:
            if method == "narrowed":
                result = stamper.narrowed(window, *arguments)
            else:
                result = methods[method](*arguments)
            if method == "window":
                window = result
        except ValueError as error:
            result = str(error)
        results.append(list(result) if isinstance(result, tuple) else result)
    results.append(stamper.reader_time_refused)
    return results


if __name__ == "__main__":
    with open(sys.argv[1]) as cases:
        for line in cases:
            print(json.dumps(replay(json.loads(line))))
