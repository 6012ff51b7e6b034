// What a hand, a key or a button does to the timeline: each is a small change of the model, then a frame.

import { duration, shown, time } from "../format.js";
import { chosenIndex, nextReading, resultOf } from "./choice.js";
import { labelOf } from "./labels.js";
import { barBox, laneAt, mostScroll, thingAt, usAt } from "./layout.js";
import { pictureOf } from "./picture.js";
import { barOf } from "./table.js";
import { linesOf } from "./tip.js";
import { around, bounded, panned, spanOf, zoomed } from "./window.js";

const LIVE_SPAN_US = 60_000_000; // of a first look at the present

/** All actions of the toolbar, the canvas and the panel. */
export function actionsOf({ app, model, scene, frames, presentUs, all, changed, hint, detail }) {
    const moveTo = (window) => {
        frames.halt();
        model.window = window;
        frames.dirty();
    };
    const byHand = (window) => {
        model.live = false;
        hint().hide();
        moveTo(window);
    };
    const glide = (window) => {
        hint().hide();
        frames.glide(window);
    };
    const choose = (patch) => {
        Object.assign(model.chosen, patch);
        frames.dirty();
    };

    const actions = {
        pan(share) {
            model.live = false;
            glide(panned(frames.target(), share));
        },
        drag(dx, dy) {
            model.scroll -= dy;
            if (dx === 0) return frames.dirty();
            return byHand(panned(model.window, -dx / model.width_px));
        },
        scroll(px) {
            model.scroll += px;
            hint().hide();
            frames.dirty();
        },
        inLabels: (x) => !scene().geometry.narrow && x < scene().geometry.left,
        zoom(factor, x) {
            const at_us = x === undefined ? undefined : usAt(scene(), x);
            moveTo(zoomed(model.window, factor, model.live ? model.window.to_us : at_us));
        },
        glide(factor, x) {
            const at_us = x === undefined ? undefined : usAt(scene(), x);
            glide(zoomed(frames.target(), factor, model.live ? model.window.to_us : at_us));
        },
        all() {
            model.live = false;
            glide(all());
        },
        latest() {
            const span_us = spanOf(model.window);
            glide(bounded(presentUs() - 0.94 * span_us, presentUs() + 0.06 * span_us));
        },
        live() {
            model.live = !model.live;
            if (model.live && model.window.from_us > presentUs()) model.window = bounded(presentUs() - LIVE_SPAN_US, presentUs());
            app.announce(model.live ? "following the present" : "stopped");
            changed();
        },
        by(by) {
            if (model.by !== by) Object.assign(model, { by, offset: 0, scroll: 0, search: "" });
            choose({ lane: -1 });
            changed();
        },
        search(text) {
            if (model.search !== text) Object.assign(model, { search: text, offset: 0, scroll: 0 });
            changed();
        },
        page(step) {
            Object.assign(model, { offset: Math.max(0, model.offset + step), scroll: 0 });
            choose({ lane: -1 });
            changed();
        },
        rule(name, isShown) {
            if (isShown) model.rulesHidden.delete(name);
            else model.rulesHidden.add(name);
            changed();
        },
        lane(step) {
            const lanes = model.tile?.answer.lanes ?? [];
            if (lanes.length === 0) return;
            const lane = Math.max(0, Math.min(lanes.length - 1, model.chosen.lane + (model.chosen.lane < 0 && step < 0 ? lanes.length : step)));
            choose({ lane });
            reveal(lane);
            const { name, place } = labelOf(lanes[lane]);
            app.announce(`${name} ${place}, ${lanes[lane].readings} readings, lane ${lane + 1} of ${lanes.length}`);
        },
        reading(step) {
            const next = nextReading(scene(), step);
            if (next === null) {
                app.announce(model.tile?.answer.bars ? "no more readings here" : "zoom in to see single readings");
                return;
            }
            const { bars } = model.tile.answer;
            const bar = barOf(bars, next.index);
            choose({ bar, arc: null });
            reveal(bars.lane[next.index]);
            const middle_us = (bar.t_min + bar.t_max) / 2;
            if (middle_us < model.window.from_us || middle_us > model.window.to_us) {
                moveTo(bounded(middle_us - spanOf(model.window) / 2, middle_us + spanOf(model.window) / 2));
            }
            const now = scene();
            const box = barBox(now, next.index);
            hint().show(now, { kind: "bar", index: next.index }, box.x + box.width / 2, box.y + box.height);
            app.announce(`${linesOf(now, { kind: "bar", index: next.index }).join(", ")}, ${next.place + 1} of ${next.of}`);
        },
        open() {
            if (chosenIndex(model.tile, model.chosen.bar) >= 0) actions.openBar(model.chosen.bar, true);
        },
        close() {
            const was = !detail().element.hidden;
            detail().hide();
            hint().hide();
            choose({ bar: null, arc: null });
            if (was) document.querySelector(".stage canvas")?.focus({ preventScroll: true });
        },
        hover(x, y) {
            const now = scene();
            const thing = thingAt(now, x, y);
            if (thing === null) hint().hide();
            else hint().show(now, thing, x, y);
        },
        leave: () => hint().hide(),
        click(x, y) {
            const now = scene();
            const thing = thingAt(now, x, y);
            choose({ lane: laneAt(now, y) });
            if (thing?.kind === "bar") actions.openBar(barOf(now.tile.answer.bars, thing.index));
            else if (thing?.kind === "arc") actions.openArc(now.tile.answer.arcs.id[thing.index]);
            else actions.close();
        },
        openBar(bar, focus = false) {
            choose({ bar, arc: null });
            detail().reading(bar);
            if (focus) detail().focus();
        },
        openArc(id) {
            const found = resultOf(model.tile, id);
            if (found === null) return;
            choose({ bar: null, arc: id });
            detail().result(found.arc, found.ends.map(endText));
        },
        zoomTo(t_min, t_max, arc = null) {
            model.live = false;
            if (arc !== null) choose({ arc });
            glide(around(t_min, t_max, 0.4));
        },
        async copyLink() {
            await new Promise((resolve) => setTimeout(resolve, 350)); // the address follows when the hand rests
            try {
                await navigator.clipboard.writeText(location.href);
                app.announce("the link is copied");
            } catch {
                prompt("Copy this link", location.href);
            }
        },
        async savePicture() {
            const blob = await pictureOf(scene(), app.overview?.landing ?? "");
            const link = document.createElement("a");
            link.href = URL.createObjectURL(blob);
            link.download = "timeline.png";
            link.click();
            setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
        },
    };

    function reveal(lane) {
        const { geometry } = scene();
        const room = geometry.bottom - geometry.top;
        const top = lane * geometry.laneHeight;
        model.scroll = Math.min(top, Math.max(model.scroll, top + geometry.laneHeight - room));
        model.scroll = Math.max(0, Math.min(mostScroll(geometry), model.scroll));
    }

    return actions;
}

function endText({ us, label, bar }) {
    const where = label === null ? "a reader that is not shown" : Object.values(labelOf(label)).filter(Boolean).join(" · ");
    if (bar === null) return { text: `${where}, ${time(us)} UTC`, bar };
    return { text: `${shown(bar.key ?? "reading", 40)} · ${where}, ± ${duration((bar.t_max - bar.t_min) / 2)}`, bar };
}
