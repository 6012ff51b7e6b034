// Why not: a key and a time in; how far a rule's pattern came with it, and what stood in the way.

import { slot } from "./api.js";
import { shown, time } from "./format.js";
import { wholeNumber } from "./link.js";
import { button, element } from "./parts.js";
import { table } from "./table.js";
import { pairsPicture } from "./why_not/pairs.js";

export function view(section, app) {
    const asked = slot();
    const suggestions = slot();
    const rule = element("select", { name: "rule" });
    const key = element("input", { name: "key", maxLength: 1024, required: true, autocomplete: "off" });
    const keys = element("datalist", { id: "why-not-keys" });
    key.setAttribute("list", "why-not-keys");
    const at = element("input", { name: "at", placeholder: "2026-11-26 13:20:17.5", required: true, autocomplete: "off" });
    const form = element("form", { className: "toolbar" },
        element("label", {}, "Rule ", rule), element("label", {}, "Key ", key), element("label", {}, "Time (UTC) ", at),
        button("Why not?", "Why not?", () => undefined, { type: "submit", className: "primary" }), keys);
    const told = element("div", { className: "view-detail", role: "status", "aria-live": "polite" });
    section.append(element("p", { className: "soft", textContent: "Give a key and about the time at which a result was expected." }), form, told);
    key.addEventListener("input", suggest);
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const at_us = timeOf(at.value);
        if (at_us === null) {
            tellError(`Time: found “${shown(at.value, 40)}”, expected one as in 2026-11-26 13:20:17.5 or microseconds since 1970.`);
            return;
        }
        app.setState({ rule: rule.value, key: key.value, at: at_us }, { push: true });
        ask(rule.value, key.value, at_us);
    });

    async function suggest() {
        try {
            const found = await suggestions.get("/api/keys", { prefix: key.value.slice(0, 200) });
            keys.replaceChildren(...found.keys.map((one) => element("option", { value: one })));
        } catch {
            return; // suggestions are a help only
        }
    }

    async function ask(name, key_, at_us) {
        told.replaceChildren(element("p", { className: "soft", textContent: "Looking …" }));
        try {
            tell(await asked.get("/api/why-not", { rule: name, key: key_, at: at_us }));
        } catch (error) {
            if (!app.api.wasReplaced(error)) tellError(error.message);
        }
    }

    function tellError(text) {
        told.replaceChildren(element("p", { className: "error", role: "alert", textContent: text }));
    }

    function tell({ verdict, lines, answer, keys: known }) {
        told.replaceChildren(
            element("h3", { textContent: `${shown(answer.rule ?? "", 80)}: ${shown(verdict, 80)}` }),
            element("pre", { className: "text panel", textContent: lines.join("\n") }),
        );
        if (answer.kind === "pairs" && answer.focus) told.append(...pairsPicture(answer));
        if (answer.events?.length) told.append(element("div", { className: "scroll" }, eventsTable(answer.events)));
        if (answer.svg) told.append(element("img", { className: "drawing", alt: "The states of the group; the text tells them", src: URL.createObjectURL(new Blob([answer.svg], { type: "image/svg+xml" })) }));
        if (known?.length) {
            const buttons = known.map((one) => button(shown(one, 60), `Ask about ${shown(one, 60)}`, () => { key.value = one; form.requestSubmit(); }, { className: "plain" }));
            told.append(element("p", {}, "No reading of this key was found. Keys that landed last: "), element("p", { className: "keys" }, ...buttons.flatMap((one) => [one, " "])));
        }
    }

    return {
        show(state) {
            const names = (app.overview?.rules ?? []).map((one) => one.name);
            rule.replaceChildren(...names.map((name) => element("option", { value: name, textContent: shown(name, 60) })));
            if (names.includes(state.rule)) rule.value = state.rule;
            if (!names.length) {
                told.replaceChildren(element("p", { className: "empty", textContent: "Start the dashboard with --rule FILE: this view asks about the rules of a file." }));
                return;
            }
            key.value = state.key ?? key.value;
            const at_us = wholeNumber(state.at);
            if (at_us !== null) at.value = time(at_us);
            else if (!at.value && app.overview?.last_us) at.value = time(app.overview.last_us, 1000);
            suggest();
            if (state.key && at_us !== null) ask(state.rule ?? rule.value, state.key, at_us);
        },
        news() {},
        hide() {
            asked.stop();
            suggestions.stop();
        },
    };
}

/** Microseconds of a text: a number of them, or a date and time in UTC with up to six digits of a second. */
export function timeOf(text) {
    const plain = text.trim();
    if (/^-?\d{6,16}$/.test(plain)) return Number(plain);
    const found = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,6}))?Z?$/.exec(plain);
    if (found === null) return null;
    const ms = Date.parse(`${found[1]}T${found[2]}Z`);
    return Number.isNaN(ms) ? null : ms * 1000 + Number((found[3] ?? "").padEnd(6, "0"));
}

function eventsTable(events) {
    const names = Object.keys(events[0]).filter((name) => typeof events[0][name] !== "object" || events[0][name] === null);
    return table({
        caption: "Events that were looked at",
        columns: names.map((title) => ({ title })),
        rows: events.map((one) => names.map((name) => (/^t_/.test(name) ? time(one[name]) : String(one[name] ?? "")))),
    });
}
