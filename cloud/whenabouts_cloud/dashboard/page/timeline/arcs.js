// Results as arcs between the readings they were found in: colour by rule, opacity by probability.
//
// Arcs of one colour and one opacity (of TEN) are one path: a few strokes a frame for five hundred arcs.

import { ruleColour } from "../colours.js";
import { arcCurve } from "./layout.js";

const STEPS = 10;
const LEAST_OPACITY = 0.15; // below it nobody sees that there is something to ask about
const DOT_PX = 2.5;

/** The opacity of a probability; what has none (a verdict) is drawn in full. */
export function opacityOf(probability) {
    if (typeof probability !== "number") return 1;
    return Math.max(LEAST_OPACITY, Math.min(1, Math.round(probability * STEPS) / STEPS));
}

export function drawArcs(context, scene, colours) {
    const { arcs } = scene.tile.answer;
    const groups = new Map(); // "opacity colour" to curves
    let chosen = null;
    for (let index = 0; index < arcs.id.length; index += 1) {
        const rule = arcs.rule[index];
        if (!scene.rules.shows(rule)) continue;
        const curve = arcCurve(scene, index);
        if (curve === null || outside(curve, scene.geometry)) continue;
        curve.partial = arcs.lane_a[index] < 0 || arcs.lane_b[index] < 0;
        if (arcs.id[index] === scene.chosen.arc && scene.chosen.arc !== null) chosen = { curve, rule };
        const key = `${opacityOf(arcs.probability[index])} ${rule}`;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(curve);
    }
    for (const [key, curves] of groups) {
        const cut = key.indexOf(" ");
        context.globalAlpha = Number(key.slice(0, cut));
        stroke(context, curves, ruleColour(scene.rules.names, key.slice(cut + 1)), 1.5);
    }
    context.globalAlpha = 1;
    if (chosen !== null) {
        stroke(context, [chosen.curve], colours.panel, 6);
        stroke(context, [chosen.curve], ruleColour(scene.rules.names, chosen.rule), 3);
    }
}

function outside({ x0, x1, cx0, cx1, y0, y1 }, { left, right, top, bottom }) {
    const [least, most] = [Math.min(x0, x1, cx0, cx1), Math.max(x0, x1, cx0, cx1)];
    return most < left || least > right || Math.max(y0, y1) < top || Math.min(y0, y1) - 30 > bottom;
}

function stroke(context, curves, colour, width) {
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (const { x0, y0, cx0, cy0, cx1, cy1, x1, y1 } of curves) {
        context.moveTo(x0, y0);
        context.bezierCurveTo(cx0, cy0, cx1, cy1, x1, y1);
    }
    context.stroke();
    context.beginPath();
    for (const { x0, y0, x1, y1, partial } of curves) {
        dot(context, x0, y0, width);
        if (!partial) dot(context, x1, y1, width);
    }
    context.fill();
}

function dot(context, x, y, width) {
    const radius = DOT_PX + (width > 2 ? 1.5 : 0);
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
}
