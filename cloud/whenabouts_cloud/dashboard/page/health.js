// Health: the ingests, what they could not read, how far everything is behind, and the batches of each query.

import { slot } from "./api.js";
import { chart } from "./chart.js";
import { ago, count, counted, duration, NOTHING, shown, size, time } from "./format.js";
import { element } from "./parts.js";
import { fillTable } from "./table.js";

const REFRESH_MS = 2000;

export function view(section, app) {
    const asked = slot();
    const error = element("p", { className: "error", role: "alert", hidden: true });
    const problems = element("ul", { className: "notice", hidden: true });
    const tables = Object.fromEntries(["ingests", "landing", "lag", "reasons", "letters", "queries"].map((name) => [name, element("table", { "data-table": name })]));
    const charts = element("div", { className: "charts" });
    const boxes = Object.values(tables).map((one) => element("div", { className: "scroll" }, one));
    section.append(error, problems, element("div", { className: "cards" }, ...boxes), charts);
    const drawn = new Map(); // name to chart
    let waiting = null;

    async function load() {
        waiting = null;
        let answer;
        try {
            answer = await asked.get("/api/health");
            error.hidden = true;
        } catch (problem) {
            if (app.api.wasReplaced(problem)) return;
            error.hidden = false;
            error.textContent = problem.message;
            return;
        }
        const told = app.overview?.problems ?? [];
        problems.hidden = told.length === 0;
        problems.replaceChildren(...told.map((text) => element("li", { textContent: shown(text, 300) })));
        fillTable(tables.ingests, ingests(answer));
        fillTable(tables.landing, landing(answer));
        fillTable(tables.lag, lag(answer));
        fillTable(tables.reasons, reasons(answer));
        fillTable(tables.letters, letters(answer));
        fillTable(tables.queries, queries(answer));
        for (const ingest of answer.ingests) {
            draw(`Readings landed${ingest.ingest ? ` by ${shown(ingest.ingest, 60)}` : ""}`, "readings", "line", [ingest.history.at_us, ingest.history.landed]);
        }
        for (const query of answer.queries) {
            const recent = query.recent.filter((one) => typeof one?.ended_us === "number");
            draw(`Seconds of each batch: ${shown(query.name, 60)}`, "seconds", "points", [recent.map((one) => one.ended_us), recent.map((one) => one.seconds ?? null)]);
        }
    }

    function draw(title, name, kind, data) {
        if (!drawn.has(title)) {
            drawn.set(title, chart(charts, { title, x: { label: "Time (UTC)", kind: "time" }, y: { label: name, kind: "number" }, series: [{ name, kind }] }));
        }
        drawn.get(title).set(data);
    }

    return {
        show: load,
        news() {
            waiting ??= setTimeout(load, REFRESH_MS);
        },
        hide() {
            clearTimeout(waiting);
            waiting = null;
            asked.stop();
        },
    };
}

const number = (title) => ({ title, number: true });

function ingests({ ingests: some }) {
    return {
        caption: some.length ? "Ingests" : "Ingests: none has reported. They keep health records beside the landing.",
        columns: [{ title: "Ingest", heads: true }, { title: "Broker" }, { title: "Heard" }, { title: "Counters since its start" }],
        rows: some.map((one) => [
            one.ingest || "(without a name)", one.connected ? "connected" : { text: "not connected", class: "bad" }, ago(one.age_us),
            Object.entries(one.counters).map(([name, value]) => `${name} ${count(value)}`).join(", "),
        ]),
    };
}

function landing({ landing: found }) {
    return {
        caption: "Landing",
        columns: [number("Readings"), number("Files"), number("Size"), number("Damaged files"), { title: "First stamp" }, { title: "Last stamp" }, { title: "Last landed" }],
        rows: [[found.readings, found.files, size(found.bytes), found.damaged, time(found.first_us, 1000), time(found.last_us, 1000), time(found.latest_landed_us, 1000)]],
    };
}

function lag({ lag: found }) {
    return {
        caption: `Lag: the newest reading landed ${found.landed_us === null ? "never" : ago(found.landed_us)}`,
        columns: [{ title: "Query", heads: true }, { title: "Rule" }, number("Complete until, before the newest stamp")],
        rows: found.queries.map((one) => [one.name, one.rule, duration(one.behind_us)]),
    };
}

function reasons({ dead_letters: { by_reason: some } }) {
    return {
        caption: some.length ? "Dead letters by reason" : "Dead letters: none",
        columns: [{ title: "Reason", heads: true }, number("Messages")],
        rows: some.map((one) => [one.reason, one.count]),
    };
}

function letters({ dead_letters: { letters: some } }) {
    return {
        caption: some.length ? "The newest dead letters" : "Dead letters: no content is kept",
        columns: [{ title: "Landed" }, { title: "Topic", heads: true }, { title: "Reason" }, { title: "What was wrong" }, number("Bytes"), { title: "Content" }],
        rows: some.map((one) => [time(one.at_us, 1000), one.topic, one.reason, one.text, one.size, { text: one.content || NOTHING, title: one.content, class: "mono" }]),
    };
}

function queries({ queries: some }) {
    return {
        caption: some.length ? "Queries" : "Queries: none has written its progress. Give --results the folder that a job has as --out.",
        columns: [{ title: "Query", heads: true }, { title: "Last batch" }, number("Batches"), { title: "Rules" }],
        rows: some.map((one) => [
            one.name, ago(one.age_us), one.batches,
            Object.entries(one.rules).map(([name, rule]) => `${name}: ${counted(rule?.readings ?? 0, "reading")}, ${counted(rule?.results ?? 0, "result")}, ${count(rule?.late ?? 0)} late`).join("; "),
        ]),
    };
}
