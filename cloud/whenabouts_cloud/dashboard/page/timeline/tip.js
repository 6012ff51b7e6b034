// A few words beside the pointer, or beside the reading that was chosen with keys.

import { count, counted, duration, percent, shown, time } from "../format.js";
import { labelOf } from "./labels.js";
import { element } from "../parts.js";

/** {element, show(scene, thing, x, y), hide()} */
export function tip() {
    const made = element("div", { className: "tip", role: "tooltip", hidden: true });
    return {
        element: made,
        show(scene, thing, x, y) {
            made.replaceChildren(...linesOf(scene, thing).map((text, index) => element(index ? "div" : "strong", { textContent: text })));
            const [left, above] = [x > scene.size.width * 0.6, y > scene.size.height * 0.6];
            const across = left ? `calc(${x - 14}px - 100%)` : `${x + 14}px`;
            const down = above ? `calc(${y - 10}px - 100%)` : `${y + 16}px`;
            made.style.transform = `translate(${across}, ${down})`;
            made.hidden = false;
        },
        hide() {
            made.hidden = true;
        },
    };
}

/** What is told of a thing of a scene: the first line is its name. */
export function linesOf(scene, thing) {
    const { answer } = scene.tile;
    if (thing.kind === "bar") return barLines(answer, thing.index);
    if (thing.kind === "arc") return arcLines(answer.arcs, thing.index);
    return [
        counted(thing.count, "reading"),
        `${time(thing.from_us, thing.to_us - thing.from_us)} + ${duration(thing.to_us - thing.from_us)}`,
        laneText(answer.lanes[thing.lane]),
    ];
}

function barLines({ bars, lanes }, index) {
    const [t_min, t_max] = [bars.t_min[index], bars.t_max[index]];
    const width_us = t_max - t_min;
    const lines = [
        bars.key[index] === null ? "reading without a key" : shown(bars.key[index], 60),
        `${time(t_min + width_us / 2, width_us / 10)} ± ${duration(width_us / 2)}`,
        laneText(lanes[bars.lane[index]]),
    ];
    if (bars.late[index]) lines.push("late: behind the frontier when it landed");
    const true_us = bars.true_us?.[index] ?? null;
    if (true_us !== null) {
        const inside = true_us >= t_min && true_us <= t_max;
        lines.push(`true time ${time(true_us, 1000)}, ${inside ? "inside" : "OUTSIDE"}`);
    }
    return lines;
}

function arcLines(arcs, index) {
    const probability = arcs.probability[index];
    return [
        `${shown(arcs.rule[index], 60)}: ${shown(arcs.kind[index], 20)}`,
        typeof probability === "number" ? `probability ${percent(probability)}` : shown(arcs.status[index], 40),
        `${duration(Math.abs(arcs.b_us[index] - arcs.a_us[index]))} between the middles of its ends`,
    ];
}

function laneText(lane) {
    const { name, place } = labelOf(lane);
    return place ? `${name} · ${place}` : `${name} · ${count(lane.readings)} in view`;
}
