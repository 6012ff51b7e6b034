// The probability of pairs as a picture: the distance between two readings, how likely each distance is, and which are near enough.
//
// Both true times are uniform in their stamps, so the density of their distance is a trapezoid; the part of its area between
// the limits is the probability.

import { duration, NOTHING, percent, shown, time } from "../format.js";
import { element } from "../parts.js";
import { table } from "../table.js";

const MOST = 8;
const [WIDTH, HEIGHT, LEFT] = [720, 92, 8];
const SVG = "http://www.w3.org/2000/svg";

export function pairsPicture(answer) {
    const some = answer.candidates.slice(0, MOST);
    const caption = `Distance ${answer.aliases[1]} − ${answer.aliases[0]}: the outline is how likely each distance is, filled where it is near enough`;
    return [
        element("p", { className: "soft", textContent: some.length ? caption : "There is no candidate." }),
        ...some.map((one) => figure(answer, one)),
        element("div", { className: "scroll" }, candidatesTable(answer)),
    ];
}

/** Corners of the density of b − a: {x: us, y: 0 to 1}. */
export function trapezoid(a, b) {
    const [first, last] = [b.t_min - a.t_max, b.t_max - a.t_min];
    const short = Math.min(a.t_max - a.t_min, b.t_max - b.t_min);
    return [{ x: first, y: 0 }, { x: first + short, y: 1 }, { x: last - short, y: 1 }, { x: last, y: 0 }];
}

function figure(answer, one) {
    const moved = (reading) => ({ t_min: reading.t_min + (reading.offset_us ?? 0), t_max: reading.t_max + (reading.offset_us ?? 0) });
    const [a, b] = answer.side === "b" ? [one.reading, answer.focus] : [answer.focus, one.reading];
    const corners = trapezoid(moved(a), moved(b));
    const [low, high] = answer.limits_us;
    const least = Math.min(low, corners[0].x);
    const most = Math.max(high, corners[3].x);
    const x = (us) => LEFT + ((us - least) / Math.max(1, most - least)) * (WIDTH - 2 * LEFT);
    const y = (height) => HEIGHT - 26 - height * (HEIGHT - 40);
    const picture = made("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "pair-picture", role: "img", "aria-label": `probability ${percent(one.probability)}` });
    picture.append(
        made("rect", { class: "near", x: x(low), y: 4, width: Math.max(1, x(high) - x(low)), height: HEIGHT - 30 }),
        made("polygon", { class: "filled", points: points(clipped(corners, low, high), x, y) }),
        made("polygon", { class: "outline", points: points(corners, x, y) }),
        label(duration(low), x(low), HEIGHT - 8, "start"), label(duration(high), x(high), HEIGHT - 8, "end"),
    );
    const found = one.probability ?? null;
    return element("figure", { className: "panel pair" },
        element("figcaption", { textContent: `${shown(one.reading.reading ?? "", 120)} · probability ${percent(found)}` }), picture);
}

function points(corners, x, y) {
    return corners.map((corner) => `${x(corner.x).toFixed(1)},${y(corner.y).toFixed(1)}`).join(" ");
}

/** The part of the trapezoid between two distances. */
function clipped(corners, low, high) {
    if (high <= corners[0].x || low >= corners[3].x) return [];
    const inside = corners.filter((corner) => corner.x > low && corner.x < high);
    const [from, to] = [Math.max(low, corners[0].x), Math.min(high, corners[3].x)];
    return [{ x: from, y: 0 }, { x: from, y: heightAt(corners, from) }, ...inside, { x: to, y: heightAt(corners, to) }, { x: to, y: 0 }];
}

function heightAt([first, up, down, last], x) {
    if (x <= first.x || x >= last.x) return 0;
    if (x < up.x) return (x - first.x) / (up.x - first.x);
    if (x > down.x) return (last.x - x) / (last.x - down.x);
    return 1;
}

function made(name, attributes) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
    return node;
}

function label(text, x, y, anchor) {
    const node = made("text", { x, y, "text-anchor": anchor });
    node.textContent = text;
    return node;
}

function candidatesTable(answer) {
    return table({
        caption: "Candidates",
        columns: [{ title: "Reading", heads: true }, { title: "Key" }, { title: "Earliest" }, { title: "Latest" }, { title: "Probability", number: true }],
        rows: answer.candidates.map(({ reading, probability }) => [
            reading.reading ?? NOTHING, reading.key, time(reading.t_min), time(reading.t_max), percent(probability),
        ]),
    });
}
