// Draws a scene: lanes, counts or bars, what is not complete, the present, the axis, labels.
//
// The loop reads nothing of the page's layout, groups rectangles by colour, and leaves out what is not seen. The scene is
// a plain value, so the picture that is exported is drawn by the same code.

import { palette } from "../colours.js";
import { drawArcs } from "./arcs.js";
import { ticksOf } from "./axis.js";
import { drawBars, drawCounts } from "./bars.js";
import { drawAxis, drawLabels, drawScrollBar } from "./labels.js";
import { laneTop, xOf } from "./layout.js";

/** Paints a scene ({window, size, geometry, scroll, tile, rules, chosen, now_us}) on a context in CSS pixels. */
export function drawScene(context, scene) {
    const colours = palette();
    const { width, height } = scene.size;
    const { left, top, right, bottom } = scene.geometry;
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, height);
    const axis = ticksOf(scene.window, right - left);
    const lanes = seenLanes(scene);
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    drawIncomplete(context, scene, lanes, colours);
    drawGrid(context, scene, axis, lanes, colours);
    if (scene.tile !== null) {
        if (scene.tile.answer.bars === null) drawCounts(context, scene, lanes);
        else drawBars(context, scene, lanes, colours);
        drawArcs(context, scene, colours);
        drawFrontiers(context, scene, lanes, colours);
    }
    context.restore();
    drawNow(context, scene, colours);
    drawLabels(context, scene, lanes, colours);
    drawAxis(context, scene, axis, colours);
    drawScrollBar(context, scene, colours);
}

function seenLanes({ tile, geometry, scroll }) {
    if (tile === null) return { first: 0, last: -1 };
    const room = geometry.bottom - geometry.top;
    const first = Math.max(0, Math.floor(scroll / geometry.laneHeight));
    return { first, last: Math.min(tile.answer.lanes.length - 1, Math.floor((scroll + room) / geometry.laneHeight)) };
}

function drawIncomplete(context, scene, lanes, colours) {
    const { right, left, laneHeight } = scene.geometry;
    context.fillStyle = colours.shade;
    for (let lane = lanes.first; lane <= lanes.last; lane += 1) {
        const frontier_us = scene.tile.answer.lanes[lane].frontier_us;
        if (frontier_us === null || frontier_us === undefined) continue;
        const x = Math.max(left, xOf(scene, frontier_us));
        if (x < right) context.fillRect(x, laneTop(scene, lane), right - x, laneHeight);
    }
}

function drawGrid(context, scene, { ticks }, lanes, colours) {
    const { left, right, top, bottom, laneHeight } = scene.geometry;
    context.fillStyle = colours.line;
    for (const { us } of ticks) context.fillRect(Math.round(xOf(scene, us)), top, 1, bottom - top);
    for (let lane = lanes.first; lane <= lanes.last; lane += 1) {
        context.fillRect(left, laneTop(scene, lane) + laneHeight - 1, right - left, 1);
        if (lane === scene.chosen.lane) {
            context.globalAlpha = 0.5;
            context.fillRect(left, laneTop(scene, lane), right - left, laneHeight - 1);
            context.globalAlpha = 1;
        }
    }
}

function drawFrontiers(context, scene, lanes, colours) {
    const { laneHeight, right, left } = scene.geometry;
    context.fillStyle = colours.frontier;
    let told = false;
    for (let lane = lanes.first; lane <= lanes.last; lane += 1) {
        const frontier_us = scene.tile.answer.lanes[lane].frontier_us;
        if (frontier_us === null || frontier_us === undefined) continue;
        const x = xOf(scene, frontier_us);
        if (x < left || x > right) continue;
        const y = laneTop(scene, lane);
        for (let dash = 1; dash < laneHeight - 2; dash += 5) context.fillRect(Math.round(x), y + dash, 1, 3);
        if (!told && right - x > 110 && y >= scene.geometry.top) {
            context.font = `10.5px ${colours.font}`;
            context.textAlign = "left";
            context.textBaseline = "top";
            context.fillText("not complete yet", x + 5, y + 4);
            told = true;
        }
    }
}

function drawNow(context, scene, colours) {
    const { left, right, top, bottom } = scene.geometry;
    const x = xOf(scene, scene.now_us);
    if (x < left || x > right) return;
    context.fillStyle = colours.now;
    context.fillRect(Math.round(x) - 0.75, top - 4, 1.5, bottom - top + 4);
    context.beginPath();
    context.moveTo(x - 4, top - 6);
    context.lineTo(x + 4, top - 6);
    context.lineTo(x, top);
    context.fill();
}
