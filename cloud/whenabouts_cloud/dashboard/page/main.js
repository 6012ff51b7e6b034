// The page's shell: which view is shown, what the server holds, and whether it still answers.
//
// A view is a module with `view(section, app) -> {show(state), news(changed), hide()}`, loaded when it is first shown.
// `app`: {api, overview, setState(patch, {push}), announce(text), link(view, state), connected}.

import * as api from "./api.js";
import { ago, counted, percent, shown, size, time } from "./format.js";
import { formatLink, parseLink, VIEWS } from "./link.js";
import { follow } from "./news.js";

const MODULES = {
    timeline: "./timeline/view.js",
    gateways: "./gateways.js",
    rules: "./rules.js",
    "why-not": "./why_not.js",
    health: "./health.js",
};
const TITLES = { timeline: "Timeline", gateways: "Gateways", rules: "Rules", "why-not": "Why not", health: "Health" };
const OVERVIEW_EVERY_MS = 1000; // figures in the header need no more

const byId = (id) => document.getElementById(id);
const views = new Map(); // name to {section, view}; at most five
const states = Object.fromEntries(VIEWS.map((name) => [name, {}]));

let current = null;
let versions = {};
let overviewAt_ms = 0;
let overviewTimer = null;
let behind_us = 0; // how far this machine's clock is behind the server's

const app = {
    api,
    overview: null,
    connected: false,
    link: formatLink,
    nowUs: () => Date.now() * 1000 + behind_us,
    announce(text) {
        byId("announce").textContent = shown(text, 300);
    },
    /** Changes the shown view's address; `push` makes it a step for the button "back". */
    setState(patch, { push = false } = {}) {
        const name = parseLink(location.hash).view;
        const state = { ...states[name], ...patch };
        for (const key of Object.keys(state)) if (state[key] === null || state[key] === "") delete state[key];
        states[name] = state;
        const target = formatLink(name, state);
        if (target === location.hash) return;
        history[push ? "pushState" : "replaceState"](null, "", target);
        updateLinks(name);
    },
};

async function route() {
    const { view: name, state } = parseLink(location.hash);
    states[name] = state;
    document.title = `${TITLES[name]} – whenabouts`;
    for (const section of document.querySelectorAll("section[data-view]")) section.hidden = section.dataset.view !== name;
    updateLinks(name);
    if (current !== name) {
        if (current !== null) views.get(current)?.view?.hide();
        current = name;
    }
    const view = await loaded(name);
    if (view !== null && current === name) guarded(() => view.show(states[name]));
}

async function loaded(name) {
    if (!views.has(name)) {
        const section = document.querySelector(`section[data-view="${name}"]`);
        const entry = { section, view: null, loading: null };
        views.set(name, entry);
        entry.loading = import(MODULES[name]).then(
            (module) => {
                entry.view = module.view(section, app);
                return entry.view;
            },
            (error) => {
                views.delete(name); // the next visit tries again
                const text = document.createElement("p");
                text.className = "error";
                text.setAttribute("role", "alert");
                text.textContent = `This view did not load: ${shown(error?.message, 200)}`;
                section.querySelector(":scope > .error")?.remove();
                section.append(text);
                return null;
            },
        );
    }
    return views.get(name).loading;
}

function updateLinks(name) {
    for (const link of document.querySelectorAll("nav a[data-link]")) {
        link.href = formatLink(link.dataset.link, states[link.dataset.link]);
        if (link.dataset.link === name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
}

/** A view's mistake must not end the shell: it is told in the console, the page goes on. */
function guarded(call) {
    Promise.resolve()
        .then(call)
        .catch((error) => {
            if (!api.wasReplaced(error)) console.error(error);
        });
}

async function readOverview() {
    overviewTimer = null;
    overviewAt_ms = performance.now();
    try {
        app.overview = await api.get("/api/overview");
        behind_us = app.overview.now_us - Date.now() * 1000;
        tellFigures();
        return true;
    } catch (error) {
        if (error.status > 0) tellConnection("refused", error.message);
        return false;
    }
}

function wantOverview() {
    if (overviewTimer !== null) return;
    overviewTimer = setTimeout(readOverview, Math.max(0, overviewAt_ms + OVERVIEW_EVERY_MS - performance.now()));
}

function tellFigures() {
    const seen = app.overview;
    const parts = [counted(seen.readings, "reading"), counted(seen.lanes, "reader"), size(seen.bytes)];
    if (seen.latest_landed_us !== null) parts.push(`last landed ${ago(app.nowUs() - seen.latest_landed_us)}`);
    if (seen.counted < 1) parts.push(`counting ${percent(seen.counted)}`);
    byId("figures").textContent = parts.join(" · ");
    byId("figures").title = [
        `landing: ${shown(seen.landing, 200)}`,
        ...(seen.results ?? []).map((place) => `results: ${shown(place, 200)}`),
        `times: ${time(seen.first_us)} – ${time(seen.last_us)} UTC`,
    ].join("\n");
    const problems = seen.problems ?? [];
    byId("problems").hidden = problems.length === 0;
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more: see Health)` : "";
    byId("problems").textContent = problems.length ? `${shown(problems[0], 200)}${more}` : "";
}

const CONNECTION = { open: "connected", lost: "connection lost, trying again" };

function tellConnection(state, text = CONNECTION[state]) {
    app.connected = state === "open";
    const status = byId("status");
    status.dataset.connection = state;
    if (status.textContent !== text) status.textContent = text;
}

function heard(news) {
    const changed = {};
    for (const key of ["landing", "results", "health", "rules"]) changed[key] = news[key] !== versions[key];
    versions = news;
    if (!Object.values(changed).some(Boolean)) return;
    wantOverview();
    const view = views.get(current)?.view;
    if (view) guarded(() => view.news(changed));
}

async function connectionChanged(state) {
    tellConnection(state);
    if (state !== "open") return;
    versions = {}; // a server that came back counts anew: everything may have changed
    await readOverview();
    const view = views.get(current)?.view;
    if (view) guarded(() => view.news({ landing: true, results: true, health: true, rules: true }));
}

async function start() {
    document.querySelector("[data-skip]").addEventListener("click", (event) => {
        event.preventDefault();
        byId("content").focus();
    });
    await readOverview();
    addEventListener("hashchange", route);
    follow("/api/news", { heard, connection: connectionChanged });
    setInterval(() => app.overview && tellFigures(), 5000);
    await route();
}

start();
