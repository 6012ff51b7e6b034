// Gateways: who is heard, how well their clocks are bound, what they keep back; the one that is chosen over time.

import { slot } from "./api.js";
import { chart } from "./chart.js";
import { ago, counted, duration, NOTHING, shown, size, time } from "./format.js";
import { element } from "./parts.js";
import { fillTable } from "./table.js";

const TICK_MS = 1000; // ages grow between two answers
const REFRESH_MS = 2000;
const DAY_S = 86400;

const COLUMNS = [
    { title: "Gateway", heads: true }, { title: "State" }, { title: "Heartbeat" }, { title: "Clock bound", number: true },
    { title: "Clock" }, { title: "Spool", number: true }, { title: "Refused", number: true }, { title: "Invalid", number: true },
    { title: "Certificate ends" }, { title: "Complete until" },
];

export function view(section, app) {
    const list = slot();
    const one = slot();
    const table = element("table", {});
    const error = element("p", { className: "error", role: "alert", hidden: true });
    const empty = element("p", { className: "empty", hidden: true, textContent: "No gateway has been heard. The ingest keeps what gateways report beside the landing, once they connect." });
    const detail = element("div", { className: "panel view-detail", hidden: true });
    section.append(error, empty, element("div", { className: "scroll" }, table), detail);
    let chosen = null; // "site/gateway"
    let answer = null;
    let ticking = null;
    let waiting = null;
    let charts = [];

    async function load() {
        waiting = null;
        try {
            answer = await list.get("/api/gateways");
            error.hidden = true;
        } catch (problem) {
            if (app.api.wasReplaced(problem)) return;
            error.hidden = false;
            error.textContent = problem.message;
            return;
        }
        draw();
        if (chosen !== null) loadDetail();
    }

    function draw() {
        if (answer === null) return;
        empty.hidden = answer.gateways.length > 0;
        table.hidden = answer.gateways.length === 0;
        const rows = answer.gateways.map((gateway) => row(gateway, app.nowUs(), () => choose(nameOf(gateway))));
        fillTable(table, { caption: counted(answer.total, "gateway"), columns: COLUMNS, rows, total: answer.total });
    }

    function choose(name) {
        chosen = name;
        app.setState({ gateway: name }, { push: true });
        loadDetail();
    }

    async function loadDetail() {
        const gateway = answer?.gateways.find((found) => nameOf(found) === chosen);
        detail.hidden = gateway === undefined;
        if (gateway === undefined) return;
        const to = Math.ceil(Math.max(app.nowUs(), gateway.heard_us ?? 0)) + 1;
        let history;
        try {
            history = await one.get("/api/gateway", { site: gateway.site, gateway: gateway.gateway, from: 0, to });
        } catch (problem) {
            if (app.api.wasReplaced(problem)) return;
            detail.replaceChildren(element("p", { className: "error", textContent: problem.message }));
            return;
        }
        if (detail.dataset.gateway !== chosen) drawDetail(gateway);
        for (const { made, name } of charts) made.set([history.at_us, history[name]]);
        fillTable(detail.querySelector("table[data-readers]"), readers(gateway));
        fillTable(detail.querySelector("table[data-sources]"), sources(history));
    }

    function drawDetail(gateway) {
        for (const { made } of charts) made.destroy();
        detail.dataset.gateway = chosen;
        const grid = element("div", { className: "charts" });
        detail.replaceChildren(
            element("h3", { textContent: shown(chosen, 120) }),
            element("p", { className: "soft", textContent: facts(gateway) }),
            grid,
            element("div", { className: "scroll" }, element("table", { "data-readers": "" })),
            element("div", { className: "scroll" }, element("table", { "data-sources": "" })),
        );
        const x = { label: "Time (UTC)", kind: "time" };
        charts = [
            ["Clock bound", "bound_us", "duration", "step"], ["Spooled readings", "spool_readings", "number", "line"],
            ["Refused readings", "refused", "number", "step"], ["Invalid readings", "invalid", "number", "step"],
        ].map(([title, name, kind, shape]) => ({
            name,
            made: chart(grid, { title, x, y: { label: title, kind }, series: [{ name: title, kind: shape }] }),
        }));
    }

    return {
        show(state) {
            chosen = state.gateway ?? null;
            load();
            ticking ??= setInterval(draw, TICK_MS);
        },
        news({ health, landing }) {
            if (health || landing) waiting ??= setTimeout(load, REFRESH_MS);
        },
        hide() {
            clearInterval(ticking);
            clearTimeout(waiting);
            ticking = waiting = null;
            list.stop();
            one.stop();
        },
    };
}

const nameOf = (gateway) => `${gateway.site}/${gateway.gateway}`;

function row(gateway, now_us, action) {
    const age_us = gateway.heard_us === null ? null : now_us - gateway.heard_us;
    const ends_s = gateway.certificate_ends_s;
    const soon = ends_s !== null && ends_s - now_us / 1e6 < 30 * DAY_S;
    return [
        { text: nameOf(gateway), action },
        state(gateway),
        age_us === null ? "never" : ago(age_us),
        duration(gateway.bound_us),
        [gateway.clock_state, gateway.clock_source].filter(Boolean).join(", ") || NOTHING,
        { text: gateway.spool_readings, title: size(gateway.spool_bytes) },
        { text: gateway.refused, class: gateway.refused ? "bad" : "" },
        { text: gateway.invalid, class: gateway.invalid ? "warn" : "" },
        { text: ends_s === null ? NOTHING : time(ends_s * 1e6, 1e6).slice(0, 10), class: soon ? "warn" : "" },
        time(gateway.frontier_us, 1000),
    ];
}

function state(gateway) {
    const [text, kind] = gateway.condition === "online" ? (gateway.stale ? ["silent", "warn"] : ["online", "good"]) : [gateway.condition, gateway.condition === "unknown" ? "" : "bad"];
    return element("span", { className: `badge ${kind}`, textContent: text });
}

function facts(gateway) {
    const parts = [
        gateway.build && `runs ${gateway.build}`, gateway.boot && `boot ${gateway.boot}`, gateway.group && `group ${gateway.group}`,
        gateway.spool_bytes !== null && `${size(gateway.spool_bytes)} spooled`,
    ];
    return parts.filter(Boolean).map((part) => shown(part, 120)).join(" · ");
}

function readers(gateway) {
    return {
        caption: "Readers: what each was seen doing last, and the parts of its stamps beside the clock's bound",
        columns: [
            { title: "Reader", heads: true }, { title: "Kind" }, { title: "Last seen" }, { title: "Readings", number: true },
            ...["Reader's latency", "Adapter", "Wire", "Polling", "Delay"].map((title) => ({ title, number: true })),
        ],
        rows: gateway.streams.map((stream) => [
            stream.name, stream.kind, time(stream.last_us, 1000), stream.readings, duration(stream.latency_us),
            duration(stream.adapter_us), duration(stream.wire_us), duration(stream.poll_us), duration(stream.delay_us),
        ]),
    };
}

/** Where the clock's bound came from: a row each time that it changed. */
function sources({ at_us, clock_source, clock_state, bound_us }) {
    const rows = [];
    at_us.forEach((us, index) => {
        const same = index > 0 && clock_source[index] === clock_source[index - 1] && clock_state[index] === clock_state[index - 1];
        if (!same) rows.push([time(us, 1000), clock_state[index], clock_source[index], duration(bound_us[index])]);
    });
    return { caption: "Source of the clock's bound", columns: [{ title: "Since" }, { title: "Clock" }, { title: "Source" }, { title: "Bound", number: true }], rows: rows.reverse() };
}
