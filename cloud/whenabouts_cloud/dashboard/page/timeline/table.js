// The timeline as tables: its lanes with their counts, the readings that are drawn as bars, the results drawn as arcs.

import { count, duration, NOTHING, percent, time } from "../format.js";
import { labelOf } from "./labels.js";

const MOST = 2000;

/** The contents of the three tables for what is in the window. */
export function tablesOf(scene, actions) {
    const { answer } = scene.tile;
    const seen = { from_us: scene.window.from_us, to_us: scene.window.to_us };
    return [lanesTable(scene, seen), ...(answer.bars === null ? [] : [readingsTable(answer, seen, actions)]), resultsTable(scene, seen, actions)];
}

function lanesTable(scene, seen) {
    const { answer } = scene.tile;
    const inView = countsInView(scene, seen);
    const exact = answer.exact ? "" : ", estimated while the landing is counted";
    return {
        caption: `Lanes and their readings between ${time(seen.from_us)} and ${time(seen.to_us)} UTC${exact}`,
        columns: [
            { title: answer.by === "tag" ? "Tag" : "Reader", heads: true },
            { title: "Readings in view", number: true },
            { title: "Complete until" },
            { title: "Last reading" },
        ],
        rows: answer.lanes.map((lane, index) => [laneText(lane), inView[index], time(lane.frontier_us, 1000), time(lane.last_us, 1000)]),
        total: answer.lanes_total,
    };
}

/** Readings a lane: bars that touch the window, or the counts of the columns whose middle is in it. */
export function countsInView({ tile }, { from_us, to_us }) {
    const { bars, cells, lanes } = tile.answer;
    const counts = new Array(lanes.length).fill(0);
    if (bars !== null) {
        bars.lane.forEach((lane, index) => {
            if (bars.t_max[index] >= from_us && bars.t_min[index] <= to_us) counts[lane] += 1;
        });
        return counts;
    }
    const column_us = (tile.to_us - tile.from_us) / tile.px;
    (cells ?? []).forEach((pairs, lane) => {
        for (let at = 0; at < pairs.length; at += 2) {
            const us = tile.from_us + (pairs[at] + 0.5) * column_us;
            if (us >= from_us && us <= to_us) counts[lane] += pairs[at + 1];
        }
    });
    return counts;
}

function readingsTable({ bars, lanes }, seen, actions) {
    const rows = [];
    let total = 0;
    for (let index = 0; index < bars.lane.length; index += 1) {
        if (bars.t_max[index] < seen.from_us || bars.t_min[index] > seen.to_us) continue;
        total += 1;
        if (rows.length < MOST) rows.push(readingRow(bars, lanes, index, actions));
    }
    return {
        caption: "Readings",
        columns: [
            { title: "Key" },
            { title: "Reader" },
            { title: "Earliest" },
            { title: "Latest" },
            { title: "Width", number: true },
            { title: "Late" },
            { title: "True time" },
        ],
        rows,
        total,
    };
}

function readingRow(bars, lanes, index, actions) {
    const [t_min, t_max] = [bars.t_min[index], bars.t_max[index]];
    const bar = barOf(bars, index);
    return [
        { text: bars.key[index] ?? NOTHING, action: () => actions.openBar(bar) },
        laneText(lanes[bars.lane[index]]),
        time(t_min),
        time(t_max),
        duration(t_max - t_min),
        bars.late[index] ? "late" : "",
        time(bars.true_us?.[index] ?? null),
    ];
}

function resultsTable(scene, seen, actions) {
    const { arcs, lanes } = scene.tile.answer;
    const rows = [];
    for (let index = 0; index < arcs.id.length; index += 1) {
        if (!scene.rules.shows(arcs.rule[index]) || arcs.t_max[index] < seen.from_us || arcs.t_min[index] > seen.to_us) continue;
        rows.push([
            { text: arcs.rule[index], action: () => actions.openArc(arcs.id[index]) },
            arcs.kind[index],
            typeof arcs.probability[index] === "number" ? percent(arcs.probability[index]) : NOTHING,
            laneText(lanes[arcs.lane_a[index]]),
            time(arcs.a_us[index]),
            laneText(lanes[arcs.lane_b[index]]),
            time(arcs.b_us[index]),
            arcs.status[index],
        ]);
    }
    return {
        caption: arcs.total > arcs.id.length ? `Results, the most probable of ${count(arcs.total)}` : "Results",
        columns: ["Rule", "Kind", "Probability", "First reader", "First middle", "Last reader", "Last middle", "Status"].map((title) => ({
            title,
            number: title === "Probability",
        })),
        rows,
    };
}

/** The identity of a bar, which stays when answers change. */
export function barOf(bars, index) {
    const bar = {};
    for (const name of ["site", "gateway", "boot", "seq", "t_min", "t_max", "key"]) bar[name] = bars[name][index];
    return bar;
}

function laneText(lane) {
    if (lane === undefined) return "not among the lanes shown";
    const { name, place } = labelOf(lane);
    return place ? `${name} (${place})` : name;
}
