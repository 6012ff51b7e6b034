// What frames the lanes: their names and counts at the left, the axis of time above, a bar for scrolling.
//
// Names are foreign texts: controls are written as escapes, and the text is cut to its place by measuring.

import { count, shown } from "../format.js";
import { contextOf } from "./axis.js";
import { laneTop, mostScroll, xOf } from "./layout.js";

const LABEL_LETTERS = 60; // more do not fit

export function drawLabels(context, scene, lanes, colours) {
    const { left, top, bottom, laneHeight, narrow } = scene.geometry;
    context.save();
    context.beginPath();
    context.rect(0, top, scene.size.width, bottom - top);
    context.clip();
    if (!narrow) {
        context.fillStyle = colours.panel;
        context.fillRect(0, top, left, bottom - top);
    }
    context.textBaseline = "alphabetic";
    for (let lane = lanes.first; lane <= lanes.last; lane += 1) {
        const y = laneTop(scene, lane);
        if (lane === scene.chosen.lane) {
            context.fillStyle = colours.accent;
            context.fillRect(0, y, 3, laneHeight - 1);
        }
        if (narrow) narrowLabel(context, scene.tile.answer.lanes[lane], y, scene.size.width, colours);
        else wideLabel(context, scene.tile.answer.lanes[lane], y, scene.geometry, colours);
    }
    context.restore();
    if (!narrow) {
        context.fillStyle = colours.lineStrong;
        context.fillRect(left - 1, top, 1, bottom - top);
    }
}

function wideLabel(context, lane, y, { left, laneHeight }, colours) {
    const { name, place } = labelOf(lane);
    const middle = y + laneHeight / 2;
    context.font = `11px ${colours.font}`;
    context.textAlign = "right";
    context.fillStyle = colours.textSoft;
    const number = count(lane.readings);
    context.fillText(number, left - 10, middle + (place ? -2 : 4));
    const room = left - 34 - context.measureText(number).width;
    context.textAlign = "left";
    context.fillStyle = colours.text;
    context.font = `600 12px ${colours.font}`;
    context.fillText(fitted(context, name, room), 10, middle + (place ? -2 : 4));
    if (!place) return;
    context.font = `11px ${colours.font}`;
    context.fillStyle = colours.textSoft;
    context.fillText(fitted(context, place, left - 22), 10, middle + 12);
    context.fillStyle = colours.line;
    context.fillRect(0, y + laneHeight - 1, left, 1);
}

function narrowLabel(context, lane, y, width, colours) {
    const { name, place } = labelOf(lane);
    context.textAlign = "left";
    context.font = `600 11px ${colours.font}`;
    context.fillStyle = colours.text;
    const text = fitted(context, name, width * 0.45);
    context.fillText(text, 8, y + 12);
    const used = context.measureText(text).width;
    context.font = `11px ${colours.font}`;
    context.fillStyle = colours.textSoft;
    const number = count(lane.readings);
    const room = width - used - 40 - context.measureText(number).width;
    context.fillText(fitted(context, place, room), 16 + used, y + 12);
    context.textAlign = "right";
    context.fillText(number, width - 14, y + 12);
}

/** A lane's two lines: the stream and where it is, or the tag. */
export function labelOf(lane) {
    if (lane.stream === null || lane.stream === undefined) return { name: shown(lane.key ?? lane.label, LABEL_LETTERS), place: "" };
    return { name: shown(lane.stream, LABEL_LETTERS), place: `${shown(lane.site, LABEL_LETTERS)} / ${shown(lane.gateway, LABEL_LETTERS)}` };
}

/** A text cut to a width, by halves: a few measurements. */
function fitted(context, text, room) {
    if (context.measureText(text).width <= room) return text;
    let [least, most] = [0, text.length];
    while (least + 1 < most) {
        const middle = (least + most) >> 1;
        if (context.measureText(`${text.slice(0, middle)}…`).width <= room) least = middle;
        else most = middle;
    }
    return least > 0 ? `${text.slice(0, least)}…` : "";
}

export function drawAxis(context, scene, { ticks, step_us }, colours) {
    const { left, right, top } = scene.geometry;
    context.fillStyle = colours.lineStrong;
    context.fillRect(0, top - 1, scene.size.width, 1);
    context.font = `11px ${colours.font}`;
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    for (const { us, text } of ticks) {
        const x = Math.round(xOf(scene, us));
        context.fillStyle = colours.lineStrong;
        context.fillRect(x, top - 6, 1, 5);
        const half = context.measureText(text).width / 2;
        if (x - half < left + 2 || x + half > right - 2) continue;
        context.fillStyle = colours.text;
        context.fillText(text, x, top - 11);
    }
    drawDays(context, scene, ticks, step_us, colours);
    context.fillStyle = colours.textSoft;
    context.textAlign = "left";
    if (!scene.geometry.narrow) context.fillText("reader, readings shown", 10, top - 11);
}

/** The day at the left end, and each new day where it begins, if there is room for it. */
function drawDays(context, scene, ticks, step_us, colours) {
    const { left, top } = scene.geometry;
    context.textAlign = "left";
    context.fillStyle = colours.textSoft;
    let text = contextOf(scene.window.from_us, step_us);
    const first = text ? `${text} UTC` : "UTC";
    context.fillText(first, left + 4, top - 27);
    let free = left + 12 + context.measureText(first).width;
    for (const { us } of ticks) {
        const next = contextOf(us, step_us);
        const x = xOf(scene, us);
        if (next === text) continue;
        text = next;
        if (x < free) continue;
        context.fillText(next, x, top - 27);
        free = x + 8 + context.measureText(next).width;
    }
}

export function drawScrollBar(context, scene, colours) {
    const most = mostScroll(scene.geometry);
    if (most === 0) return;
    const { right, top, bottom, content } = scene.geometry;
    const room = bottom - top;
    const size = Math.max(24, (room * room) / content);
    context.fillStyle = colours.lineStrong;
    context.fillRect(right + 3, top + ((room - size) * scene.scroll) / most, 5, size);
}
