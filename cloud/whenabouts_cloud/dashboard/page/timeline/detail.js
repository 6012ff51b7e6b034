// The panel of what was chosen: a reading with the parts of its stamp, its results and the true time; or a result.

import { slot, wasReplaced } from "../api.js";
import { duration, NOTHING, percent, shown, time } from "../format.js";
import { button, element } from "../parts.js";
import { fillTable } from "../table.js";

/** {element, reading(bar), result(arc, {ends}), hide(), shown} */
export function detailPanel(actions) {
    const question = slot();
    const title = element("h3", { tabIndex: -1 });
    const body = element("div", { className: "detail-body" });
    const close = button("×", "Close the panel", actions.close, { className: "quiet" });
    const made = element(
        "aside",
        { className: "detail panel", "aria-label": "What was chosen", hidden: true },
        element("div", { className: "detail-head" }, title, close),
        body,
    );
    const begin = (text) => {
        question.stop();
        title.textContent = text;
        made.hidden = false;
    };
    return {
        element: made,
        focus: () => title.focus(),
        async reading({ site, gateway, boot, seq, t_min, t_max, key }) {
            begin(key === null ? "Reading" : shown(key, 60));
            body.replaceChildren(element("p", { className: "soft", textContent: "asking…" }));
            try {
                const answer = await question.get("/api/reading", { site, gateway, boot, seq, t_min, t_max });
                body.replaceChildren(...readingParts(answer, actions));
            } catch (error) {
                if (wasReplaced(error)) return;
                body.replaceChildren(element("p", { className: "error", role: "alert", textContent: shown(error.message, 300) }));
            }
        },
        result(arc, ends) {
            begin(`Result of ${shown(arc.rule, 60)}`);
            body.replaceChildren(...resultParts(arc, ends, actions));
        },
        hide() {
            question.stop();
            made.hidden = true;
        },
    };
}

function readingParts({ reading, parts, lateness_us, results, side_output, truth }, actions) {
    const { t_min, t_max } = reading;
    const width_us = t_max - t_min;
    const step_us = Math.max(1, width_us / 100);
    const made = [
        heading("Stamp"),
        stampPicture(t_min, t_max, truth),
        facts([
            ["from", `${time(t_min, step_us)} UTC`],
            ["to", `${time(t_max, step_us)} UTC`],
            ["width", `${duration(width_us)} (± ${duration(width_us / 2)})`],
            ["true time", truth ? `${time(truth.true_us)} (${truth.inside ? "inside the stamp" : "OUTSIDE the stamp"})` : null],
            ["landed", lateness_us === null || lateness_us === undefined ? null : `${duration(lateness_us)} later`],
        ]),
        button("Zoom to it", "Zoom to this reading", () => actions.zoomTo(t_min, t_max)),
    ];
    if (parts?.length) made.push(heading("Parts of the stamp"), partsPicture(parts), partsTable(parts));
    made.push(heading("Identity"), facts(identity(reading)));
    made.push(heading(`Results (${results.length})`));
    made.push(results.length ? resultsTable(results, actions) : soft("No result contains this reading."));
    if (side_output?.length) made.push(heading("Left out"), sideOutput(side_output));
    return made;
}

const FIRST = ["stream", "site", "gateway", "kind", "value", "unit", "key", "boot", "seq", "clock_state", "attrs"];
const ELSEWHERE = new Set(["t_min", "t_max"]);

function identity(reading) {
    const rest = Object.keys(reading).filter((name) => !FIRST.includes(name) && !ELSEWHERE.has(name));
    return [...FIRST, ...rest].filter((name) => name in reading).map((name) => [name, columnText(name, reading[name])]);
}

function columnText(name, value) {
    if (value === null || value === undefined) return null;
    if (name.endsWith("_us") && typeof value === "number" && value > 1e14) return `${time(value)} UTC`;
    return typeof value === "object" ? shown(JSON.stringify(value), 400) : shown(value, 400);
}

/** The stamp as a bar, with the true time where it is known. */
function stampPicture(t_min, t_max, truth) {
    const track = element("div", { className: "stamp", role: "img", "aria-label": "the stamp, and the true time if it is known" });
    track.append(element("span", { className: "stamp-bar" }));
    if (truth) {
        const share = (truth.true_us - t_min) / Math.max(1, t_max - t_min);
        const mark = element("span", { className: "stamp-true", title: "true time" });
        mark.style.left = `${10 + 80 * Math.max(-0.1, Math.min(1.1, share))}%`;
        track.append(mark);
    }
    return track;
}

function partsPicture(parts) {
    const total = parts.reduce((sum, part) => sum + Math.max(0, part.us ?? 0), 0) || 1;
    const row = element("div", { className: "parts", role: "img", "aria-label": "the parts of the stamp; the table behind holds them" });
    parts.forEach((part, index) => {
        const piece = element("span", { title: `${shown(part.name, 40)} ${duration(part.us)}` });
        piece.dataset.part = String(index % 4);
        piece.style.flexGrow = String(Math.max(0, part.us ?? 0) / total);
        row.append(piece);
    });
    return row;
}

function partsTable(parts) {
    const table = element("table", { className: "compact" });
    fillTable(table, {
        caption: "Each part and what it comes from",
        columns: [{ title: "Part", heads: true }, { title: "Time", number: true }, { title: "From" }],
        rows: parts.map((part, index) => [partName(part, index), duration(part.us), part.text]),
    });
    return table;
}

function partName(part, index) {
    const swatch = element("span", { className: "swatch" });
    swatch.dataset.part = String(index % 4);
    return element("span", {}, swatch, shown(part.name, 40));
}

function resultsTable(results, actions) {
    const table = element("table", { className: "compact" });
    fillTable(table, {
        caption: "Choose one to zoom to it",
        columns: [{ title: "Rule" }, { title: "Probability", number: true }, { title: "Status" }, { title: "Length", number: true }],
        rows: results.map((result) => [
            { text: result.rule, action: () => actions.zoomTo(result.t_min, result.t_max, result.id) },
            probabilityText(result.probability),
            result.status ?? result.kind,
            duration(result.t_max - result.t_min),
        ]),
    });
    return table;
}

function sideOutput(rows) {
    const table = element("table", { className: "compact" });
    fillTable(table, {
        caption: "What rules did not take, and why",
        columns: [{ title: "Rule" }, { title: "Reason" }],
        rows: rows.map((row) => [row.rule, row.reason]),
    });
    return table;
}

function resultParts(arc, ends, actions) {
    const step_us = Math.max(1, (arc.t_max - arc.t_min) / 1000);
    return [
        facts([
            ["kind", shown(arc.kind, 40)],
            ["probability", probabilityText(arc.probability)],
            ["status", arc.status === null ? null : shown(arc.status, 60)],
            ["from", `${time(arc.t_min, step_us)} UTC`],
            ["to", `${time(arc.t_max, step_us)} UTC`],
            ["length", duration(arc.t_max - arc.t_min)],
            ["id", shown(arc.id, 80)],
        ]),
        button("Zoom to it", "Zoom to this result", () => actions.zoomTo(arc.t_min, arc.t_max, arc.id)),
        heading("Its first and last reading"),
        ...ends.map(({ text, bar }) =>
            bar === null ? soft(text) : element("p", {}, button(text, `Open the reading: ${text}`, () => actions.openBar(bar), { className: "plain" })),
        ),
    ];
}

function probabilityText(probability) {
    return typeof probability === "number" ? percent(probability) : NOTHING;
}

function heading(text) {
    return element("h4", { textContent: text });
}

function soft(text) {
    return element("p", { className: "soft", textContent: text });
}

function facts(pairs) {
    const list = element("dl", { className: "facts" });
    for (const [name, text] of pairs) {
        if (text !== null && text !== undefined) list.append(element("dt", { textContent: shown(name, 40) }), element("dd", { textContent: text }));
    }
    return list;
}
