// What is chosen on the timeline, by hand or by keys: a lane, a reading, a result.

import { sameBar } from "./bars.js";
import { barOf } from "./table.js";

/** The index of the chosen bar in the tile at hand, or -1. */
export function chosenIndex(tile, bar) {
    const bars = tile?.answer.bars;
    if (!bars || bar === null) return -1;
    return bars.seq.findIndex((_, index) => sameBar(bars, index, bar));
}

/** The next reading by time from the chosen one, in the chosen lane if there is one; null if there is none. */
export function nextReading(scene, step) {
    const { tile, chosen, window } = scene;
    const bars = tile?.answer.bars;
    if (!bars) return null;
    const inLane = (index) => chosen.lane < 0 || bars.lane[index] === chosen.lane;
    const order = bars.seq.map((_, index) => index).filter(inLane);
    order.sort((a, b) => bars.t_min[a] + bars.t_max[a] - bars.t_min[b] - bars.t_max[b]);
    if (order.length === 0) return null;
    const at = order.indexOf(chosenIndex(tile, chosen.bar));
    if (at >= 0) {
        const place = at + step;
        return place < 0 || place >= order.length ? null : { index: order[place], place, of: order.length };
    }
    const seen = order.filter((index) => bars.t_max[index] >= window.from_us && bars.t_min[index] <= window.to_us);
    if (seen.length === 0) return null;
    const index = step > 0 ? seen[0] : seen[seen.length - 1];
    return { index, place: order.indexOf(index), of: order.length };
}

/** The values of an arc, and the readings at its ends where they are among the bars. */
export function resultOf(tile, id) {
    const { arcs, bars, lanes } = tile.answer;
    const index = arcs.id.indexOf(id);
    if (index < 0) return null;
    const arc = {};
    for (const name of ["id", "rule", "kind", "probability", "t_min", "t_max", "status", "a_us", "b_us", "lane_a", "lane_b"]) {
        arc[name] = arcs[name][index];
    }
    const end = (lane, us) => ({ lane, us, bar: lane < 0 || !bars ? null : barAtMiddle(bars, lane, us), label: lanes[lane] ?? null });
    return { index, arc, ends: [end(arc.lane_a, arc.a_us), end(arc.lane_b, arc.b_us)] };
}

function barAtMiddle(bars, lane, us) {
    const index = bars.lane.findIndex((one, at) => one === lane && Math.abs((bars.t_min[at] + bars.t_max[at]) / 2 - us) <= 1);
    return index < 0 ? null : barOf(bars, index);
}

