// Readings in their lanes: as counts where they are many, else each as a bar as wide as its uncertainty.

import { palette } from "../colours.js";
import { densityImage, STRIP } from "./density.js";
import { barBox, laneInside, xOf } from "./layout.js";

export function drawCounts(context, scene, lanes) {
    const { tile } = scene;
    if (tile.image === null || tile.imageTheme !== palette()) {
        tile.image = densityImage(tile);
        tile.imageTheme = palette();
    }
    if (tile.image === null) return;
    const x0 = xOf(scene, tile.from_us);
    const wide = xOf(scene, tile.to_us) - x0;
    const { left, right } = scene.geometry;
    const first = Math.max(0, Math.floor(((left - x0) / wide) * tile.px)); // of the image: only what is seen
    const last = Math.min(tile.px, Math.ceil(((right - x0) / wide) * tile.px));
    if (last <= first) return;
    const column = wide / tile.px;
    context.imageSmoothingEnabled = false;
    for (let lane = lanes.first; lane <= lanes.last; lane += 1) {
        const inside = laneInside(scene, lane);
        const at = [x0 + first * column, inside.top, (last - first) * column, inside.height];
        context.drawImage(tile.image, first, lane * STRIP, last - first, STRIP, ...at);
    }
}

export function drawBars(context, scene, lanes, colours) {
    const { bars } = scene.tile.answer;
    const { left, right } = scene.geometry;
    const boxes = [];
    for (let lane = lanes.first; lane <= lanes.last; lane += 1) {
        for (const index of scene.tile.barsOfLane[lane]) {
            const box = barBox(scene, index);
            if (box.x > right || box.x + box.width < left - 8) continue;
            box.index = index;
            boxes.push(box);
        }
    }
    fillBars(context, boxes.filter((box) => !bars.late[box.index]), colours.bar);
    const late = boxes.filter((box) => bars.late[box.index]);
    fillBars(context, late, colours.late);
    drawFlags(context, late, colours.late);
    const chosen = boxes.find((box) => sameBar(bars, box.index, scene.chosen.bar));
    if (chosen) {
        context.strokeStyle = colours.barChosen;
        context.lineWidth = 2;
        context.strokeRect(chosen.x - 1.5, chosen.y - 1.5, chosen.width + 3, chosen.height + 3);
    }
    drawTrueTimes(context, scene, boxes, colours);
}

/** A bar is a soft body between its two ends: nothing inside it is more likely than the rest. */
function fillBars(context, boxes, colour) {
    context.fillStyle = colour;
    context.globalAlpha = 0.62;
    for (const box of boxes) context.fillRect(box.x, box.y, box.width, box.height);
    context.globalAlpha = 1;
    for (const { x, y, width, height } of boxes) {
        if (width < 6) continue;
        context.fillRect(x, y, 1, height);
        context.fillRect(x + width - 1, y, 1, height);
    }
}

/** Late readings carry a flag, so that they are not told by colour alone. */
function drawFlags(context, boxes, colour) {
    context.fillStyle = colour;
    context.beginPath();
    for (const { x, y, width } of boxes) {
        const end = x + width;
        context.moveTo(end - 3.5, y - 5);
        context.lineTo(end + 3.5, y - 5);
        context.lineTo(end, y + 1);
    }
    context.fill();
}

function drawTrueTimes(context, scene, boxes, colours) {
    const { true_us } = scene.tile.answer.bars;
    if (!true_us) return;
    context.beginPath();
    for (const box of boxes) {
        const us = true_us[box.index];
        if (us === null || us === undefined) continue;
        const x = xOf(scene, us);
        const y = box.y + box.height / 2;
        context.moveTo(x, y - 3.5);
        context.lineTo(x + 3.5, y);
        context.lineTo(x, y + 3.5);
        context.lineTo(x - 3.5, y);
        context.closePath();
    }
    context.fillStyle = colours.true;
    context.strokeStyle = colours.panel;
    context.lineWidth = 1.5;
    context.stroke();
    context.fill();
}

/** True if a bar of this answer is the one that was chosen (answers change, identities do not). */
export function sameBar(bars, index, chosen) {
    return (
        chosen !== null &&
        bars.seq[index] === chosen.seq &&
        bars.boot[index] === chosen.boot &&
        bars.gateway[index] === chosen.gateway &&
        bars.site[index] === chosen.site &&
        bars.t_min[index] === chosen.t_min
    );
}
