// Rules: each with its explanation and the figures of its results; and an editor that checks, tries and publishes.

import { slot } from "./api.js";
import { chart } from "./chart.js";
import { counted, shown } from "./format.js";
import { element } from "./parts.js";
import { editor } from "./rules/editor.js";
import { fillTable } from "./table.js";

const REFRESH_MS = 2000;
const MINUTE_US = 60e6;

export function view(section, app) {
    const asked = slot();
    const error = element("p", { className: "error", role: "alert", hidden: true });
    const empty = element("div", { className: "empty", hidden: true },
        element("h3", { textContent: "No rules" }),
        element("p", { textContent: "Start the dashboard with --rule FILE to see its rules, or write one below and try it on what has landed." }));
    const cards = element("div", { className: "cards" });
    const edit = editor(app);
    section.append(error, empty, cards, edit.element);
    const known = new Map(); // name to {card, key, charts, late}
    let waiting = null;

    async function load() {
        waiting = null;
        let answer;
        try {
            answer = await asked.get("/api/rules");
            error.hidden = true;
        } catch (problem) {
            if (app.api.wasReplaced(problem)) return;
            error.hidden = false;
            error.textContent = problem.message;
            return;
        }
        empty.hidden = answer.rules.length > 0;
        for (const [name, { card }] of known) {
            if (answer.rules.some((rule) => rule.name === name)) continue;
            card.remove();
            known.delete(name);
        }
        for (const rule of answer.rules) tell(rule);
        edit.offer(answer);
    }

    function tell(rule) {
        const key = JSON.stringify([rule.text, rule.explanation, rule.svg]);
        let one = known.get(rule.name);
        if (one === undefined || one.key !== key) {
            one?.card.remove();
            one = { key, ...made(rule) };
            known.set(rule.name, one);
            cards.append(one.card);
            one.start();
        }
        one.set(rule.figures);
    }

    return {
        show: load,
        news({ rules, results }) {
            if (rules || results) waiting ??= setTimeout(load, REFRESH_MS);
        },
        hide() {
            clearTimeout(waiting);
            waiting = null;
            asked.stop();
        },
    };
}

function made(rule) {
    const charts = element("div", { className: "charts" });
    const late = element("table", {});
    const told = element("p", { className: "soft" });
    const card = element("article", { className: "panel view-detail", "data-rule": rule.name },
        element("h3", { textContent: `${shown(rule.name, 80)}${rule.kind ? ` · ${rule.kind}` : ""}` }), told);
    if (rule.text) card.append(element("pre", { className: "text", textContent: rule.text }));
    if (rule.svg) card.append(drawing(rule));
    if (rule.explanation?.length) card.append(element("pre", { className: "text", textContent: rule.explanation.join("\n") }));
    if (!rule.text) card.append(element("p", { className: "soft", textContent: "Its results are here, but it is not in the rule file." }));
    card.append(charts, element("div", { className: "scroll" }, late));
    const count = { label: "Results", kind: "number" };
    let made_ = [];
    return {
        card,
        start() {
            made_ = [
                chart(charts, { title: "Results a minute", x: { label: "Time (UTC)", kind: "time" }, y: count, series: [{ name: "results", kind: "bars" }] }),
                chart(charts, { title: "Probability", x: { label: "Probability", kind: "percent" }, y: count, series: [{ name: "results", kind: "bars" }] }),
                chart(charts, { title: "Delay until published", x: { label: "From", kind: "number" }, y: count, series: [{ name: "results", kind: "bars" }] }),
            ];
        },
        set(figures) {
            told.textContent = figures ? counted(figures.results, "result") : "no results yet";
            const { per_minute: minutes, probability, delay } = figures ?? {};
            made_[0].set(figures ? [minutes.counts.map((_, index) => minutes.first_us + index * MINUTE_US), minutes.counts] : [[], []]);
            made_[1].set(some(probability?.counts) ? [probability.edges.slice(0, -1), probability.counts] : [[], []]);
            const seconds = delay?.edges_us.map((us) => us / 1e6);
            made_[2].set(some(delay?.counts) ? upToLast(seconds, delay.counts) : [[], []]);
            fillTable(late, {
                caption: "Late readings by reason",
                columns: [{ title: "Reason", heads: true }, { title: "Readings", number: true }],
                rows: Object.entries(figures?.late ?? {}),
            });
        },
    };
}

const some = (counts) => counts?.some((n) => n > 0) ?? false;

/** Bins up to the last one that holds something, in seconds. */
function upToLast(edges, counts) {
    const last = counts.reduce((found, n, index) => (n > 0 ? index : found), 0);
    return [edges.slice(0, last + 1), counts.slice(0, last + 1)];
}

/** The drawing from the server as an image: nothing in it can run. */
export function drawing(rule) {
    const url = URL.createObjectURL(new Blob([rule.svg], { type: "image/svg+xml" }));
    const image = element("img", { className: "drawing", src: url, alt: `Drawing of the rule ${shown(rule.name, 80)}; the text explains it` });
    image.addEventListener("load", () => URL.revokeObjectURL(url));
    return image;
}
