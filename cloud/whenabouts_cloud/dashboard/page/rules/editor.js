// The editor of rules: mistakes at their places while one types, a trial on what has landed, and publishing.

import { slot } from "../api.js";
import { counted, shown, time } from "../format.js";
import { wholeNumber } from "../link.js";
import { button, element } from "../parts.js";
import { fillTable } from "../table.js";

const CHECK_AFTER_MS = 400;
const MINUTE_US = 60e6;
const STREAM = /^\s*STREAM\b/m;

export function editor(app) {
    const checks = slot();
    const trials = slot();
    const text = element("textarea", { rows: 12, spellcheck: false, "aria-label": "Rules", className: "rule-text", wrap: "off" });
    const lines = element("pre", { className: "line-numbers", "aria-hidden": "true" });
    const mistakes = element("ul", { className: "mistakes", role: "status", "aria-label": "Mistakes" });
    const rule = element("select", { "aria-label": "Rule to try" });
    const minutes = element("input", { type: "number", min: "1", max: "10080", value: "10", "aria-label": "Minutes to try it on" });
    const told = element("p", { role: "status", className: "soft" });
    const table = element("table", {});
    const attempt = button("Try", "Try it on what landed last", tryIt, { className: "primary", disabled: true });
    const publish = button("Publish…", "Publish to the gateways", askPublish, { hidden: true, disabled: true });
    const confirm = element("div", { hidden: true, className: "notice" });
    const whole = element("div", { className: "panel view-detail" },
        element("h3", { textContent: "Edit and try" }),
        element("p", { className: "soft", textContent: "Nothing is changed by this: the rule file stays as it is." }),
        element("div", { className: "editor" }, lines, text), mistakes,
        element("div", { className: "toolbar" }, rule, element("label", {}, "on the last ", minutes, " minutes that landed"), attempt, publish),
        confirm, told, element("div", { className: "scroll" }, table));
    let touched = false;
    let timer = null;
    text.addEventListener("input", () => {
        touched = true;
        number();
        attempt.disabled = publish.disabled = confirm.hidden = true; // until this text is checked
        clearTimeout(timer);
        timer = setTimeout(check, CHECK_AFTER_MS);
    });
    text.addEventListener("scroll", () => {
        lines.scrollTop = text.scrollTop;
    });

    function number(wrong = new Set()) {
        const count = text.value.split("\n").length;
        lines.replaceChildren();
        for (let line = 1; line <= count; line += 1) {
            lines.append(element("span", { className: wrong.has(line) ? "wrong" : "", textContent: `${wrong.has(line) ? "● " : ""}${line}\n` }));
        }
    }

    async function check() {
        let found;
        try {
            found = await checks.post("/api/check", { text: text.value });
        } catch (error) {
            if (!app.api.wasReplaced(error)) mistakes.replaceChildren(element("li", { className: "error", textContent: error.message }));
            return;
        }
        number(new Set(found.mistakes.map((one) => one.line)));
        mistakes.replaceChildren(...(found.ok ? [element("li", { className: "good", textContent: "No mistakes" })] : found.mistakes.map(mistake)));
        attempt.disabled = publish.disabled = !found.ok;
        if (found.ok) name(found.rules);
    }

    function mistake(one) {
        const item = element("li", {});
        item.append(button(`line ${one.line}, column ${one.column}: ${shown(one.text, 300)}`, "Go there", () => goTo(one), { className: "plain" }));
        return item;
    }

    function goTo({ line, column }) {
        const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
        text.focus();
        text.setSelectionRange(before + column - 1, before + column);
    }

    function name(rules) {
        const chosen = rule.value;
        rule.replaceChildren(...rules.map((one) => element("option", { value: one.name, textContent: shown(one.name, 60) })));
        if (rules.some((one) => one.name === chosen)) rule.value = chosen;
    }

    async function tryIt() {
        const last_us = app.overview?.last_us;
        if (last_us === null || last_us === undefined) {
            told.textContent = "Nothing has landed to try it on.";
            return;
        }
        const span = wholeNumber(minutes.value) ?? 10;
        told.textContent = "Trying …";
        attempt.disabled = true;
        try {
            const found = await trials.post("/api/try", { text: text.value, rule: rule.value, from_us: last_us - span * MINUTE_US, to_us: last_us });
            told.textContent = `${counted(found.results, "result")} of ${counted(found.readings, "reading")} in ${found.seconds} s${found.more ? "; the first are shown" : ""}`;
            results(found.rows);
        } catch (error) {
            if (!app.api.wasReplaced(error)) told.textContent = error.message;
        } finally {
            attempt.disabled = false;
        }
    }

    function results(rows) {
        const names = rows.length ? Object.keys(rows[0]).filter((key) => key !== "result_id" && key !== "rule") : [];
        fillTable(table, {
            caption: "Results of the trial",
            columns: names.map((title) => ({ title })),
            rows: rows.map((row) => names.map((key) => cell(key, row[key]))),
        });
    }

    async function askPublish() {
        const planned = text.value; // what is shown is what is sent, whatever is typed meanwhile
        confirm.hidden = false;
        confirm.textContent = "Asking where the rules would go …";
        try {
            const plan = await trials.post("/api/publish", { text: planned });
            const where = plan.rules.map((one) => `${one.rule}: ${one.where}${one.gateway ? ` (${one.gateway})` : ""}`).join("; ");
            confirm.replaceChildren(
                element("p", { textContent: `To ${counted(plan.gateways.length, "gateway")}. ${shown(where, 1000)}` }),
                button("Publish now", "Publish now", () => doPublish(planned), { className: "primary" }),
                button("Cancel", "Cancel", () => { confirm.hidden = true; }),
            );
        } catch (error) {
            confirm.textContent = error.message;
        }
    }

    async function doPublish(planned) {
        try {
            const done = await trials.post("/api/publish", { text: planned, confirm: true });
            confirm.textContent = `Published to ${counted(done.gateways.length, "gateway")}.`;
        } catch (error) {
            confirm.textContent = error.message;
        }
    }

    number();
    return {
        element: whole,
        /** Takes the file's text until someone has typed. */
        offer({ text: file, rules }) {
            publish.hidden = !app.overview?.may_publish;
            if (touched || text.value === file) return;
            text.value = STREAM.test(file) || file === "" ? file : `${file}\n`;
            number();
            name(rules.filter((one) => one.text));
            if (file) check();
        },
    };
}

function cell(key, value) {
    if (value !== null && typeof value === "object") return JSON.stringify(value);
    return /^t_|_t_|_us$/.test(key) && value !== null ? time(Number(value)) : value;
}
