// The view as a PNG file: a title, the picture as it is seen, a legend. Twice the size, so that it can be printed.

import { palette } from "../colours.js";
import { shown, span } from "../format.js";
import { drawScene } from "./draw.js";
import { itemsOf } from "./legend.js";

const RATIO = 2;
const TITLE_PX = 48;
const LINE_PX = 20;

/** A blob of the picture. */
export function pictureOf(scene, landing) {
    const colours = palette();
    const { width, height } = scene.size;
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d");
    context.font = `12px ${colours.font}`;
    const lines = wrapped(context, itemsOf(scene), width - 32);
    canvas.width = width * RATIO;
    canvas.height = (TITLE_PX + height + lines.length * LINE_PX + 14) * RATIO;
    context.setTransform(RATIO, 0, 0, RATIO, 0, 0);
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, canvas.height);
    context.fillStyle = colours.text;
    context.font = `600 15px ${colours.font}`;
    context.fillText(`${span(scene.window.from_us, scene.window.to_us)} UTC`, 16, 21);
    context.fillStyle = colours.textSoft;
    context.font = `12px ${colours.font}`;
    context.fillText(shown(landing, 120), 16, 39);
    context.save();
    context.translate(0, TITLE_PX);
    drawScene(context, scene);
    context.restore();
    lines.forEach((items, row) => drawItems(context, items, TITLE_PX + height + 14 + row * LINE_PX, colours));
    return new Promise((resolve) => {
        canvas.toBlob(resolve, "image/png");
    });
}

function wrapped(context, items, room) {
    const lines = [[]];
    let x = 0;
    for (const item of items) {
        const wide = 18 + context.measureText(item.text).width + 18;
        if (x + wide > room && x > 0) {
            lines.push([]);
            x = 0;
        }
        lines[lines.length - 1].push({ ...item, x: 16 + x });
        x += wide;
    }
    return lines;
}

function drawItems(context, items, y, colours) {
    context.font = `12px ${colours.font}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { mark, colour, text, x } of items) {
        context.fillStyle = colour;
        drawMark(context, mark, x, y);
        context.fillStyle = colours.text;
        context.fillText(text, x + 18, y);
    }
}

function drawMark(context, mark, x, y) {
    if (mark === "frontier" || mark === "now") context.fillRect(x + 5, y - 6, 1.5, 12);
    else if (mark === "arc") context.fillRect(x, y - 1, 12, 2);
    else if (mark === "true") {
        context.beginPath();
        for (const [dx, dy] of [[6, -4], [10, 0], [6, 4], [2, 0]]) context.lineTo(x + dx, y + dy);
        context.fill();
    } else context.fillRect(x, y - 4, 12, 8);
}
