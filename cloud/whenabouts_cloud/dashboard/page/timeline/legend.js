// The legend: each mark that is on the picture now, in words; the colours of counts with their numbers.
//
// `itemsOf` is the list; the page shows it as elements, the exported picture draws it.

import { palette, ruleColour } from "../colours.js";
import { count, shown } from "../format.js";
import { levelsOf } from "./density.js";
import { element } from "../parts.js";

/** [{mark, text, colour}] for what a scene shows. */
export function itemsOf(scene) {
    const { answer } = scene.tile;
    const colours = palette();
    const items = [];
    if (answer.bars === null) {
        for (const { level, from, to } of levelsOf(answer.most)) {
            items.push({ mark: "heat", colour: colours.heat[level], text: from >= to ? count(from) : `${count(from)}–${count(to)}` });
        }
        if (items.length) items[items.length - 1].text += " readings a column";
    } else {
        items.push({ mark: "bar", colour: colours.bar, text: "reading, as wide as its uncertainty" });
    }
    if (answer.late?.total > 0 || answer.bars?.late.some(Boolean)) items.push({ mark: "late", colour: colours.late, text: "late" });
    if (answer.bars?.true_us?.some((us) => us !== null)) items.push({ mark: "true", colour: colours.true, text: "true time" });
    if (answer.lanes.some((lane) => lane.frontier_us !== null && lane.frontier_us !== undefined)) {
        items.push({ mark: "frontier", colour: colours.frontier, text: "complete until here" });
    }
    if (scene.now_us >= scene.window.from_us && scene.now_us <= scene.window.to_us) items.push({ mark: "now", colour: colours.now, text: "now" });
    for (const [rule, number] of rulesOf(answer.arcs)) {
        if (!scene.rules.shows(rule)) continue;
        items.push({ mark: "arc", colour: ruleColour(scene.rules.names, rule), text: `${shown(rule, 40)} (${count(number)})` });
    }
    return items;
}

/** {element, tell(scene)}: filled again only when its words change. */
export function legend() {
    const made = element("ul", { className: "legend", "aria-label": "Legend" });
    let told = "";
    return {
        element: made,
        tell(scene) {
            const items = itemsOf(scene);
            const key = JSON.stringify(items);
            if (key === told) return;
            told = key;
            made.replaceChildren(...items.map(itemElement));
            const { arcs } = scene.tile.answer;
            const rest = arcs.total - arcs.id.length;
            if (rest > 0) made.append(element("li", { className: "soft", textContent: `${count(rest)} less probable results are not drawn: zoom in` }));
        },
    };
}

function itemElement({ mark, colour, text }) {
    const swatch = element("span", { className: `mark-${mark}`, "aria-hidden": "true" });
    swatch.style.setProperty("--mark", colour);
    return element("li", { className: mark === "heat" ? "heat" : "" }, swatch, text);
}

function rulesOf(arcs) {
    const numbers = new Map();
    for (const rule of arcs.rule) numbers.set(rule, (numbers.get(rule) ?? 0) + 1);
    return numbers;
}
