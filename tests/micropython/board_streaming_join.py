"""On the board's VM: replay arrivals through the streaming join and the vectors of compiled rules, or measure its speed.

argv: `replay FILE` (one case a line), `rules FILE` (one row a line), `agent FILE` (one run a line) or
`speed RATE D_US COUNT`.
"""

import gc
import json
import sys
import time

from whenabouts_protocol.streaming_join import StreamingJoin

# Names that only the vectors use: flashed code numbers names that stand nowhere as a text, as those of `options` do.
NAMES = ("derived", "lo_us", "hi_us", "p", "q", "key_equal", "limit", "a", "b", "streams", "shortest_us", "longest_us")


def replay(case):
    """Result of each call of a case, then the counters."""
    join = StreamingJoin(*case["args"])
    results = []
    for call in case["calls"]:
        if call[0] == "advance":
            join.advance(call[1], call[2])
        else:
            results.append(join.push(*call[1:]))
    results.append([join.kept, join.pairs, join.evaluations, join.late, join.overflow, join.beyond_length])
    return results


def derive(run):
    """Results that a gateway's rules derive from readings numbered as they come, one by one, then the counters."""
    from whenabouts_edge.rules.evaluate import EdgeRules, Source
    from whenabouts_protocol.messages.compiled_rule import decode_rules

    rules = EdgeRules(decode_rules(bytes.fromhex(run["rules"]))[2], limit=run["limit"])
    for n, (stream, t_min, t_max, key, clock_state, vclock) in enumerate(run["readings"]):
        source = Source(t_min, t_max, key, clock_state, tuple(vclock))
        source.boot, source.seq = 1 << 40, n
        for d in rules.push(stream, source):
            fields = [d.stream, d.key, d.ppm, d.t_min, d.t_max, d.clock_state, list(d.vclock)]
            yield fields + sorted([list(item) for item in d.attrs().items()])
        rules.advance(t_max - 50)
    for stream, counted in sorted(rules.counters().items()):
        yield [stream, sorted([list(item) for item in counted.items()])]


def check_rule(row):
    """True if a row of rules.json or refused_rules.json is encoded, decoded or refused as it states."""
    from whenabouts_protocol.errors import WireError
    from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, decode_rules, encode_rules

    data = bytes.fromhex(row["hex"])
    if "rules" not in row:
        try:
            decode_rules(data)
            return False
        except WireError as error:
            return row["reason"] in str(error)
    rules = []
    for fields in row["rules"]:
        assert all(name in NAMES for part in (fields, fields["a"], fields["b"]) for name in part)
        for side in ("a", "b"):
            options = fields[side]
            fields[side] = RuleSide(**options)
        options = fields
        rules.append(CompiledRule(**options))
    same = encode_rules(row["site"], row["gateway"], rules) == data
    return same and decode_rules(data) == (row["site"], row["gateway"], rules)


def drawn(count, step):
    """Arrivals in order of time, gaps uniform up to twice the step, lengths of 20 to 200 ms; the same on every machine."""
    state, now = 1, 1790000000000000
    for n in range(count):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        now += (state >> 8) % (2 * step)
        yield n & 1, n, now, now + 20000 + (state >> 8) * 31 % 180000


def measure(rate, d_us, count):
    """Print microseconds for an arrival, matches a tuple, heap bytes that the operator and its buffers hold at the end.

    An iterator: a simulated board collects memory only between its steps.
    """
    gc.collect()
    yield
    before = gc.mem_alloc()
    join = StreamingJoin(-d_us, d_us, 4, 5, (20000, 200000), (20000, 200000))
    begin = time.ticks_us()
    for side, n, t_min, t_max in drawn(count, 500000 // rate):
        join.push(side, n, t_min, t_max)
        if not n % 32:
            join.advance(t_min, t_min)
            gc.collect()
            yield
    spent = time.ticks_diff(time.ticks_us(), begin)
    gc.collect()
    yield
    held, free = gc.mem_alloc() - before, gc.mem_free()
    results = {"us": spent // count, "matches": 2 * join.pairs // count, "kept": join.kept, "held": held, "free": free}
    print(json.dumps(results))


if __name__ == "__main__":
    if sys.argv[1] == "speed":
        program = measure(*[int(x) for x in sys.argv[2:5]])
        if sys.platform != "webassembly":  # a simulated board asks for the steps itself
            for _ in program:
                pass
    else:
        with open(sys.argv[2]) as cases:
            for text in cases:
                gc.collect()
                row = json.loads(text)
                if sys.argv[1] == "agent":
                    for result in derive(row):
                        print(json.dumps(result))
                else:
                    print(json.dumps(replay(row) if sys.argv[1] == "replay" else check_rule(row)))
