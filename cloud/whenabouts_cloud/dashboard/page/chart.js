// Small charts with uPlot, each with its table right behind it.
//
// A chart is rebuilt when the theme changes, and takes its width from its box; a view only hands over its data.

import { palette } from "./colours.js";
import { clock, count, day, DAY_US, duration, MINUTE_US, percent, size, time } from "./format.js";
import { tableBehind } from "./table.js";
import uPlot from "./vendor/uplot/uPlot.esm.js";

const HEIGHT_PX = 150;

const SHOWN_AS = {
    time: (value) => time(value, 1000),
    duration,
    percent,
    size,
    number: count,
};

/**
 * A chart in `parent`: `{element, set(data), destroy()}`.
 *
 * `title`; `x`: {label, kind}, `y`: {label, kind, log?, range?}, kinds: "time" (us), "duration" (us), "percent",
 * "size", "number"; `series`: [{name, kind: "line" | "step" | "bars" | "points", colour?}]; `data` as uPlot takes
 * it: [xs, ys of the first series, …], null where nothing is known. A histogram's xs are the lower edges of its bins.
 */
export function chart(parent, { title, x, y, series, height = HEIGHT_PX, heading = "h3" }) {
    const element = document.createElement("figure");
    element.className = "chart";
    const head = element.appendChild(document.createElement("div"));
    head.className = "chart-head";
    head.appendChild(document.createElement(heading)).textContent = title;
    const box = element.appendChild(document.createElement("div"));
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${title}; the table behind it holds the same data`);
    const behind = tableBehind(box);
    behind.button.className = "quiet";
    behind.button.setAttribute("aria-label", `Show as table: ${title}`);
    head.append(behind.button);
    parent.append(element);

    let data = null;
    let drawn = null;
    const draw = () => {
        drawn?.destroy();
        drawn = null;
        box.replaceChildren();
        if (data === null || data[0].length === 0) {
            const nothing = box.appendChild(document.createElement("p"));
            nothing.className = "chart-empty";
            nothing.textContent = "nothing yet";
            return;
        }
        const width = Math.floor(box.clientWidth);
        if (width > 0) drawn = new uPlot(options({ x, y, series, width, height }), data, box);
    };
    const watcher = new ResizeObserver(() => {
        const width = Math.floor(box.clientWidth);
        if (width === 0) return;
        if (drawn === null) draw();
        else if (width !== drawn.width) drawn.setSize({ width, height });
    });
    watcher.observe(box);
    document.addEventListener("themechange", draw);
    return {
        element,
        set(next) {
            const first = data === null || data[0].length === 0 || next[0].length === 0;
            data = next;
            if (first || drawn === null) draw();
            else drawn.setData(data);
            behind.set(asTable({ title, x, y, series, data }));
        },
        destroy() {
            watcher.disconnect();
            document.removeEventListener("themechange", draw);
            drawn?.destroy();
            element.remove();
        },
    };
}

function options({ x, y, series, width, height }) {
    const colours = palette();
    return {
        width,
        height,
        padding: [8, 8, 0, 0],
        cursor: { points: { size: 6 }, drag: { x: false, y: false } },
        legend: { live: true },
        scales: {
            x: { time: false, range: x.range ?? (series.some((one) => one.kind === "bars") ? aroundBars : undefined) },
            y: { distr: y.log ? 3 : 1, range: y.range ?? (y.log ? undefined : fromZero) },
        },
        axes: [axis(x, colours, 32), axis(y, colours, 58)],
        series: [
            { label: x.label, value: (_, value) => told(x.kind, value) },
            ...series.map((one, index) => line(one, index, y, colours)),
        ],
    };
}

function axis(scale, colours, size) {
    return {
        stroke: colours.textSoft,
        font: `11px ${colours.font}`,
        size,
        gap: 4,
        grid: { stroke: colours.line, width: 1 },
        ticks: { stroke: colours.line, width: 1, size: 4 },
        values: (_, splits) => splits.map((value) => tick(scale.kind, value, splits)),
    };
}

function line(one, index, y, colours) {
    const colour = one.colour ?? [colours.bar, ...colours.rules][index];
    const shape = {
        label: one.name,
        stroke: colour,
        width: 1.5,
        points: { show: one.kind === "points", size: 4 },
        value: (_, value) => told(y.kind, value),
    };
    if (one.kind === "bars") return { ...shape, width: 0, fill: colour, paths: uPlot.paths.bars({ size: [0.9], align: 1 }) };
    if (one.kind === "step") return { ...shape, paths: uPlot.paths.stepped({ align: 1 }) };
    return shape;
}

/** Bars stand right of their lower edge: room for the last one. */
function aroundBars(plot, least, most) {
    const xs = plot.data[0];
    const step = xs.length > 1 ? xs[xs.length - 1] - xs[xs.length - 2] : 1;
    return [least, most + step];
}

function fromZero(_, least, most) {
    if (least === null || most === null) return [0, 1];
    return [Math.min(0, least), most > 0 ? most * 1.1 : 1];
}

function told(kind, value) {
    return value === null || value === undefined ? "–" : (SHOWN_AS[kind] ?? count)(value);
}

function tick(kind, value, splits) {
    if (value === null) return "";
    if (kind !== "time") return told(kind, value);
    const step = splits.length > 1 ? splits[1] - splits[0] : MINUTE_US;
    return step >= DAY_US ? day(value) : clock(value, step);
}

function asTable({ title, x, y, series, data }) {
    return {
        caption: title,
        columns: [{ title: x.label, number: true }, ...series.map((one) => ({ title: one.name, number: true }))],
        rows: data[0].map((at, row) => [told(x.kind, at), ...series.map((_, index) => told(y.kind, data[index + 1][row]))]),
    };
}
