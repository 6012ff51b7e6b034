// Counts as colour: a small image of each tile, made once, which the drawing loop stretches over its lanes.
//
// A hundred thousand rectangles a frame would be too slow; an image a tile costs some milliseconds once, and each frame
// then copies a strip a lane. More readings: a stronger colour and a taller column, by the logarithm of the count, so that
// one reading is seen beside thousands. Late readings are a strip of their own along the lane's foot.

import { palette } from "../colours.js";

export const LEVELS = 8;

const HALF = 8; // rows above the middle; a level is one more
const GAP = 1;
const LATE = 3;
export const STRIP = 2 * HALF + GAP + LATE; // rows of the image a lane

/** The level (0 to LEVELS - 1) of a count when `most` is the greatest. */
export function levelOf(count, most) {
    if (most <= 1) return LEVELS - 1;
    return Math.min(LEVELS - 1, Math.floor((Math.log(count) / Math.log(most)) * (LEVELS - 1) + 0.5));
}

/** [{level, from, to}]: the counts of each level that has some, for the legend. */
export function levelsOf(most) {
    const found = [];
    for (let level = 0; level < LEVELS; level += 1) {
        const least = level === 0 ? 1 : Math.ceil(most ** ((level - 0.5) / (LEVELS - 1)));
        const last = level === LEVELS - 1 ? most : Math.ceil(most ** ((level + 0.5) / (LEVELS - 1))) - 1;
        if (least <= last && most > 1) found.push({ level, from: least, to: last });
    }
    return found.length ? found : [{ level: LEVELS - 1, from: most, to: most }];
}

/** The image of a tile's counts: px wide, STRIP rows a lane; null if it has none. */
export function densityImage(tile) {
    const { cells, late, most, lanes } = tile.answer;
    if (!cells || lanes.length === 0) return null;
    const width = tile.px;
    const pixels = new Uint32Array(width * STRIP * lanes.length);
    const colours = palette();
    const heat = colours.heat.map(packed);
    cells.forEach((pairs, lane) => paintCounts(pixels, width, lane, pairs, most, heat));
    late?.cells?.forEach((pairs, lane) => paintLate(pixels, width, lane, pairs ?? [], packed(colours.late)));
    const image = document.createElement("canvas");
    image.width = width;
    image.height = STRIP * lanes.length;
    image.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width), 0, 0);
    return image;
}

function paintCounts(pixels, width, lane, pairs, most, heat) {
    for (let at = 0; at < pairs.length; at += 2) {
        const level = levelOf(pairs[at + 1], most);
        const first = lane * STRIP + HALF - level - 1;
        const last = lane * STRIP + HALF + level;
        for (let row = first; row <= last; row += 1) pixels[row * width + pairs[at]] = heat[level];
    }
}

function paintLate(pixels, width, lane, pairs, colour) {
    for (let at = 0; at < pairs.length; at += 2) {
        for (let row = (lane + 1) * STRIP - LATE; row < (lane + 1) * STRIP; row += 1) pixels[row * width + pairs[at]] = colour;
    }
}

/** A colour `#rrggbb` as a pixel of an ImageData on machines of our time (little-endian). */
function packed(colour) {
    const value = Number.parseInt(colour.slice(1), 16);
    return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
