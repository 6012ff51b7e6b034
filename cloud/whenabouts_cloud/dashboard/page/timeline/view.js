// The timeline: lanes of readings over time, as far as they are known, with what rules found in them.
//
// This module holds the state (`model`), asks for tiles, and hands a `scene`, a plain value, to those that draw, search
// and tell it. The canvas tells its geometry in data attributes: data-from, data-to (us), data-left, data-right,
// data-top, data-lane-height, data-scroll (CSS pixels), data-state ("loading" | "ready"), data-table ("old" | "ready").

import { palette } from "../colours.js";
import { count, HOUR_US, MINUTE_US, percent, shown } from "../format.js";
import { wholeNumber } from "../link.js";
import { tableBehind } from "../table.js";
import { actionsOf } from "./actions.js";
import { detailPanel } from "./detail.js";
import { drawScene } from "./draw.js";
import { emptyText } from "./empty.js";
import { listen } from "./input.js";
import { geometryOf, mostScroll, prepare } from "./layout.js";
import { legend } from "./legend.js";
import { loop } from "./loop.js";
import { button, element } from "../parts.js";
import { tablesOf } from "./table.js";
import { LANES, REFRESH_EVERY_MS, tiles } from "./tiles.js";
import { tip } from "./tip.js";
import { toolbar } from "./toolbar.js";
import { around, bounded, spanOf, whole } from "./window.js";

const SETTLED_MS = 300; // without a move: the link and the tables follow
const FAR_REFRESH_EVERY_MS = 5000; // of a window that new readings hardly reach
const LIVE_MARGIN = 0.06; // of the span, right of the present
const MOST_RULES = 50;
const HELP =
    "Arrow keys left and right move, plus and minus zoom, Home shows all, up and down choose a reader, " +
    "Alt with left or right chooses a reading, Enter opens it.";

export function view(section, app) {
    const model = {
        window: null, live: false, by: "reader", search: "", offset: 0, rulesHidden: new Set(), rules: [],
        chosen: { lane: -1, bar: null, arc: null }, scroll: 0, size: { width: 0, height: 0 }, width_px: 1, tile: null,
    };
    let visible = false;
    let failure = null;
    let settleTimer = null;
    let refreshTimer = null;
    let refreshed_ms = -Infinity;
    let drawnKey = "";

    const canvas = element("canvas", { tabIndex: 0, role: "application", "aria-label": `Timeline. ${HELP} The tables behind hold the same data.` });
    const stage = element("div", { className: "stage panel" }, canvas);
    const behind = tableBehind(canvas);
    const note = element("p", { className: "notice", role: "status", hidden: true });
    const hint = tip();
    const marks = legend();
    const pager = element("div", { className: "pager", hidden: true });
    const empty = element("div", { hidden: true });
    const frames = loop(model, { liveEnd, draw });
    const kept = tiles({
        prepare,
        changed: () => frames.dirty(),
        failed(error) {
            failure = error;
        },
    });
    const rules = { names: model.rules, shows: (name) => !model.rulesHidden.has(name) };
    const actions = actionsOf({ app, model, scene, frames, presentUs, all, changed, hint: () => hint, detail: () => detail });
    const detail = detailPanel(actions);
    const bar = toolbar(actions, behind.button);
    stage.append(hint.element);
    const work = element(
        "div",
        { className: "timeline" },
        bar.element,
        note,
        element("div", { className: "timeline-main" }, element("div", { className: "timeline-left" }, stage, pager, marks.element, behind.wrap), detail.element),
    );
    section.append(empty, work);
    listen(canvas, actions);
    new ResizeObserver(resized).observe(stage);
    document.addEventListener("themechange", () => {
        drawnKey = "";
        frames.dirty();
    });

    function scene() {
        const geometry = geometryOf(model.size, model.tile?.answer.lanes.length ?? 0);
        model.scroll = Math.max(0, Math.min(mostScroll(geometry), model.scroll));
        return {
            window: model.window, size: model.size, geometry, scroll: model.scroll, tile: model.tile,
            rules, chosen: model.chosen, now_us: app.nowUs(),
        };
    }

    function parameters() {
        const chosen = model.rules.filter(rules.shows);
        const some = chosen.length > 0 && chosen.length < model.rules.length;
        return { by: model.by, search: model.search, offset: model.offset || null, limit: LANES, rules: some ? chosen.join(",") : null };
    }

    function request() {
        return { window: model.window, width_px: model.width_px, parameters: parameters() };
    }

    /** Paints; asks for what is missing; tells what is shown when the hand rests. */
    function draw() {
        if (model.size.width === 0) return;
        const asked = request();
        kept.want(asked);
        const tile = kept.best(asked);
        if (tile !== model.tile) tookTile(tile);
        const now = scene();
        drawScene(canvas.getContext("2d"), now);
        tellCanvas(now, kept.waits(asked));
        settleTimer ??= setTimeout(settle, SETTLED_MS);
        bar.tell({ ...model, parameters: parameters(), dark: palette().dark });
    }

    function tellCanvas({ window, geometry, scroll }, waits) {
        const data = canvas.dataset;
        data.from = String(window.from_us);
        data.to = String(window.to_us);
        data.left = String(geometry.left);
        data.right = String(geometry.right);
        data.top = String(geometry.top);
        data.laneHeight = String(geometry.laneHeight);
        data.scroll = String(scroll);
        data.state = waits ? "loading" : "ready";
        data.table = "old";
    }

    function tookTile(tile) {
        model.tile = tile;
        for (const name of tile?.answer.arcs.rule ?? []) addRule(name);
        tellNote();
    }

    function tellNote() {
        const answer = model.tile?.answer;
        const lines = [];
        if (failure !== null) lines.push(`Not up to date: ${shown(failure.message, 200)}. Trying again.`);
        if (answer?.refused) lines.push(shown(answer.refused, 300));
        if (answer && answer.counted < 1) lines.push(`Counting ${percent(answer.counted)} – numbers are estimates.`);
        if (answer && !answer.refused && answer.lanes.length === 0) {
            lines.push(model.search ? `Nothing is named like “${shown(model.search, 60)}”.` : "No readings in this time.");
        }
        note.hidden = lines.length === 0;
        note.textContent = lines.join(" ");
    }

    function settle() {
        settleTimer = null;
        if (!visible || model.window === null) return;
        const now = scene();
        tellLink();
        tellPager();
        tellNote();
        bar.tellRules(model.rules, rules.shows);
        if (now.tile === null) return;
        marks.tell(now);
        if (kept.waits(request())) {
            frames.dirty(); // the answer's frame comes back here
            return;
        }
        const key = JSON.stringify([whole(now.window), now.tile.generation, now.tile.signature, now.tile.from_us, [...model.rulesHidden]]);
        if (key !== drawnKey) {
            drawnKey = key;
            behind.set(...tablesOf(now, actions));
        }
        canvas.dataset.table = "ready";
    }

    function tellLink() {
        const { from_us, to_us } = whole(model.window);
        const place = model.live ? { live: 1, span: Math.round(spanOf(model.window)), from: null, to: null } : { live: null, span: null, from: from_us, to: to_us };
        const hidden = [...model.rulesHidden].join(",");
        app.setState({ ...place, by: model.by === "tag" ? "tag" : null, search: model.search, offset: model.offset || null, without: hidden });
    }

    function tellPager() {
        const total = model.tile?.answer.lanes_total ?? 0;
        pager.hidden = total <= LANES && model.offset === 0;
        if (pager.hidden) return;
        const last = Math.min(total, model.offset + LANES);
        pager.replaceChildren(
            button("‹", "Lanes before", () => actions.page(-LANES), { disabled: model.offset === 0 }),
            element("span", { textContent: `lanes ${count(model.offset + 1)}–${count(last)} of ${count(total)}` }),
            button("›", "Lanes after", () => actions.page(LANES), { disabled: last >= total }),
        );
    }

    function resized() {
        const ratio = devicePixelRatio || 1;
        const { clientWidth: width, clientHeight: height } = stage;
        if (width === 0 || height === 0) return;
        model.size = { width, height };
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.getContext("2d", { alpha: false }).setTransform(ratio, 0, 0, ratio, 0, 0);
        const { left, right } = geometryOf(model.size, 1);
        model.width_px = right - left;
        frames.dirty();
        if (visible && model.window !== null) draw(); // before the next picture: a canvas that changed its size is empty
    }

    /** Where live readings are now: this moment, or the last stamp of what landed long ago. */
    function presentUs() {
        const last_us = app.overview?.last_us ?? null;
        const now_us = app.nowUs();
        return last_us === null || Math.abs(now_us - last_us) < 10 * MINUTE_US ? now_us : last_us;
    }

    function liveEnd() {
        return app.overview === null ? null : presentUs() + LIVE_MARGIN * spanOf(model.window);
    }

    function all() {
        const { first_us, last_us } = app.overview ?? {};
        if (first_us === null || first_us === undefined) return bounded(presentUs() - HOUR_US, presentUs());
        return around(first_us, last_us);
    }

    function changed() {
        drawnKey = "";
        tellNote();
        frames.dirty();
    }

    function addRule(name) {
        if (model.rules.length < MOST_RULES && !model.rules.includes(name)) model.rules.push(name);
    }

    function tellEmpty() {
        const text = model.tile === null ? emptyText(app.overview) : null;
        empty.hidden = text === null;
        work.hidden = text !== null;
        empty.replaceChildren(...(text === null ? [] : [text]));
        return text !== null;
    }

    function restore(state) {
        const [from_us, to_us] = [wholeNumber(state.from), wholeNumber(state.to)];
        model.by = state.by === "tag" ? "tag" : "reader";
        model.search = (state.search ?? "").slice(0, 200);
        model.offset = Math.max(0, wholeNumber(state.offset) ?? 0);
        model.rulesHidden = new Set((state.without ?? "").split(",").filter(Boolean));
        model.live = state.live === "1";
        if (model.live) {
            const span_us = wholeNumber(state.span) ?? MINUTE_US;
            model.window = bounded(presentUs() - span_us, presentUs());
        } else if (from_us !== null && to_us !== null && from_us < to_us) model.window = bounded(from_us, to_us);
        else if (model.window === null || Object.keys(state).length === 0) model.window = all();
        for (const rule of app.overview?.rules ?? []) addRule(rule.name);
    }

    function refresh() {
        refreshTimer = null;
        refreshed_ms = performance.now();
        kept.stale();
        frames.dirty();
    }

    return {
        show(state) {
            visible = true;
            frames.halt();
            restore(state);
            frames.start();
            if (!tellEmpty()) changed();
        },
        /** Asks again, at most twice a second where new readings are seen, else more seldom. */
        news({ landing, results, rules: rulesChanged }) {
            if (!(landing || results || rulesChanged) || model.window === null) return;
            for (const rule of app.overview?.rules ?? []) addRule(rule.name);
            const wasEmpty = !empty.hidden;
            if (tellEmpty()) return;
            if (wasEmpty) model.window = all();
            const near = model.live || wasEmpty || model.window.to_us >= (app.overview?.last_us ?? -Infinity);
            const every_ms = near ? REFRESH_EVERY_MS : FAR_REFRESH_EVERY_MS;
            refreshTimer ??= setTimeout(refresh, Math.max(0, refreshed_ms + every_ms - performance.now()));
        },
        hide() {
            visible = false;
            clearTimeout(refreshTimer);
            refreshTimer = null;
            frames.stop();
            kept.stop();
            hint.hide();
        },
    };
}
