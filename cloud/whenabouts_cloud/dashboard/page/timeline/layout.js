// Places of lanes, bars and arcs: from an answer and a window to pixels, and from a pixel back to what is there.
//
// Bars that overlap in time stand in rows of their lane (first row that is free, at most ROWS); rows depend on the
// answer alone, so nothing jumps while a hand moves the time. Searching a point looks at each bar: at most 2000.

import { spanOf } from "./window.js";

export const LEAST_BAR_PX = 1.5;

const ROWS = 6;
const AXIS_PX = 44;
const BOTTOM_PX = 10;
const LEAST_LANE_PX = 34;
const MOST_LANE_PX = 92;
const NEAR_PX = 4;
const ARC_POINTS = 24;

/** What is kept of an answer: itself, the row of each bar, the rows of each lane, each lane's bars by time. */
export function prepare(answer) {
    const lanes = answer.lanes.length;
    const rowsOfLane = new Array(lanes).fill(1);
    const barsOfLane = Array.from({ length: lanes }, () => []);
    const bars = answer.bars;
    const rows = new Uint8Array(bars === null ? 0 : bars.lane.length);
    if (bars !== null) {
        bars.lane.forEach((lane, index) => barsOfLane[lane]?.push(index));
        barsOfLane.forEach((indices, lane) => {
            indices.sort((a, b) => bars.t_min[a] - bars.t_min[b] || bars.t_max[a] - bars.t_max[b]);
            rowsOfLane[lane] = pack(bars, indices, rows);
        });
    }
    return { answer, rows, rowsOfLane, barsOfLane, image: null };
}

/** Gives each bar a row; returns how many rows there are. */
function pack(bars, indices, rows) {
    const ends = [];
    for (const index of indices) {
        let row = ends.findIndex((end) => end < bars.t_min[index]);
        if (row < 0) row = ends.length < ROWS ? ends.length : ends.indexOf(Math.min(...ends));
        ends[row] = Math.max(ends[row] ?? -Infinity, bars.t_max[index]);
        rows[index] = row;
    }
    return Math.max(1, ends.length);
}

/** {left, top, right, bottom, laneHeight, content, narrow, pad}: of a canvas of this size and this many lanes. */
export function geometryOf({ width, height }, lanes) {
    const narrow = width < 620;
    const left = narrow ? 1 : Math.min(230, Math.max(150, Math.round(width * 0.17)));
    const bottom = height - BOTTOM_PX;
    const room = bottom - AXIS_PX;
    const least = narrow ? 46 : LEAST_LANE_PX;
    const laneHeight = Math.floor(Math.min(MOST_LANE_PX, Math.max(least, lanes > 0 ? room / lanes : room)));
    const content = laneHeight * lanes;
    return { left, top: AXIS_PX, right: width - (content > room ? 10 : 1), bottom, laneHeight, content, narrow, pad: narrow ? 17 : 4 };
}

export function mostScroll(geometry) {
    return Math.max(0, geometry.content - (geometry.bottom - geometry.top));
}

/** Pixels a microsecond. */
export function scaleOf(scene) {
    return (scene.geometry.right - scene.geometry.left) / spanOf(scene.window);
}

export function xOf(scene, us) {
    return scene.geometry.left + (us - scene.window.from_us) * scaleOf(scene);
}

export function usAt(scene, x) {
    return scene.window.from_us + (x - scene.geometry.left) / scaleOf(scene);
}

export function laneTop(scene, lane) {
    return scene.geometry.top + lane * scene.geometry.laneHeight - scene.scroll;
}

/** Where the lane's readings are drawn: {top, height}. */
export function laneInside(scene, lane) {
    const { laneHeight, pad } = scene.geometry;
    return { top: laneTop(scene, lane) + pad, height: laneHeight - pad - 5 };
}

/** {x, y, width, height} of a bar. */
export function barBox(scene, index) {
    const { answer, rows, rowsOfLane } = scene.tile;
    const lane = answer.bars.lane[index];
    const inside = laneInside(scene, lane);
    const rowHeight = Math.min(18, inside.height / rowsOfLane[lane]);
    const first = inside.top + (inside.height - rowHeight * rowsOfLane[lane]) / 2;
    const scale = scaleOf(scene);
    const wide = (answer.bars.t_max[index] - answer.bars.t_min[index]) * scale;
    const width = Math.max(LEAST_BAR_PX, wide);
    const x = xOf(scene, answer.bars.t_min[index]) - (width - wide) / 2;
    return { x, y: first + rows[index] * rowHeight + 0.5, width, height: Math.max(2, rowHeight - 1.5) };
}

/** The curve of an arc: {x0, y0, x1, y1, cx0, cy0, cx1, cy1}, or null if neither end is among the lanes. */
export function arcCurve(scene, index) {
    const arcs = scene.tile.answer.arcs;
    const lanes = [arcs.lane_a[index], arcs.lane_b[index]];
    if (lanes[0] < 0 && lanes[1] < 0) return null;
    const middle = (lane) => {
        const inside = laneInside(scene, lane);
        return inside.top + inside.height / 2;
    };
    const x0 = xOf(scene, arcs.a_us[index]);
    const x1 = xOf(scene, arcs.b_us[index]);
    if (lanes[0] < 0 || lanes[1] < 0 || lanes[0] === lanes[1]) {
        const y = middle(Math.max(lanes[0], lanes[1]));
        const rise = Math.min(26, scene.geometry.laneHeight * 0.55);
        return { x0, y0: y, x1, y1: y, cx0: x0, cy0: y - rise, cx1: x1, cy1: y - rise };
    }
    const y0 = middle(lanes[0]);
    const y1 = middle(lanes[1]);
    const bow = Math.min(60, 10 + Math.abs(y1 - y0) * 0.12);
    return { x0, y0, x1, y1, cx0: x0 + bow, cy0: y0 + (y1 - y0) * 0.35, cx1: x1 + bow, cy1: y1 - (y1 - y0) * 0.35 };
}

/** The lane at a height, or -1. */
export function laneAt(scene, y) {
    if (scene.tile === null || y < scene.geometry.top || y > scene.geometry.bottom) return -1;
    const lane = Math.floor((y - scene.geometry.top + scene.scroll) / scene.geometry.laneHeight);
    return lane < scene.tile.answer.lanes.length ? lane : -1;
}

/** What is at a point: {kind: "bar" | "arc", index}, {kind: "cell", lane, from_us, to_us, count}, or null. */
export function thingAt(scene, x, y) {
    if (scene.tile === null || x < scene.geometry.left || y < scene.geometry.top) return null;
    const bar = barAt(scene, x, y);
    if (bar >= 0) return { kind: "bar", index: bar };
    const arc = arcAt(scene, x, y);
    if (arc >= 0) return { kind: "arc", index: arc };
    return cellAt(scene, x, y);
}

function barAt(scene, x, y) {
    const lane = laneAt(scene, y);
    if (lane < 0 || scene.tile.answer.bars === null) return -1;
    let best = -1;
    let least = NEAR_PX;
    for (const index of scene.tile.barsOfLane[lane]) {
        const box = barBox(scene, index);
        const away = Math.max(box.x - x, x - box.x - box.width, 0) + Math.max(box.y - y, y - box.y - box.height, 0) * 1.5;
        if (away < least) [best, least] = [index, away];
    }
    return best;
}

function arcAt(scene, x, y) {
    const arcs = scene.tile.answer.arcs;
    let best = -1;
    let least = NEAR_PX * NEAR_PX;
    for (let index = 0; index < arcs.id.length; index += 1) {
        if (!scene.rules.shows(arcs.rule[index])) continue;
        const curve = arcCurve(scene, index);
        if (curve === null || Math.max(curve.x0, curve.x1, curve.cx0) < x - NEAR_PX || Math.min(curve.x0, curve.x1) > x + 64) continue;
        const away = distance2(curve, x, y);
        if (away < least) [best, least] = [index, away];
    }
    return best;
}

/** The square of the distance from a point to a curve, by pieces of it. */
function distance2(curve, x, y) {
    let least = Infinity;
    let [px, py] = [curve.x0, curve.y0];
    for (let step = 1; step <= ARC_POINTS; step += 1) {
        const t = step / ARC_POINTS;
        const u = 1 - t;
        const [a, b, c, d] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
        const qx = a * curve.x0 + b * curve.cx0 + c * curve.cx1 + d * curve.x1;
        const qy = a * curve.y0 + b * curve.cy0 + c * curve.cy1 + d * curve.y1;
        const [dx, dy] = [qx - px, qy - py];
        const along = Math.min(1, Math.max(0, ((x - px) * dx + (y - py) * dy) / (dx * dx + dy * dy || 1)));
        least = Math.min(least, (px + along * dx - x) ** 2 + (py + along * dy - y) ** 2);
        [px, py] = [qx, qy];
    }
    return least;
}

function cellAt(scene, x, y) {
    const { answer, from_us, to_us, px } = scene.tile;
    const lane = laneAt(scene, y);
    if (lane < 0 || !answer.cells) return null;
    const column_us = (to_us - from_us) / px;
    const column = Math.floor((usAt(scene, x) - from_us) / column_us);
    const cells = answer.cells[lane] ?? [];
    for (let at = 0; at < cells.length; at += 2) {
        if (cells[at] !== column) continue;
        const start_us = from_us + column * column_us;
        return { kind: "cell", lane, from_us: start_us, to_us: start_us + column_us, count: cells[at + 1] };
    }
    return null;
}
