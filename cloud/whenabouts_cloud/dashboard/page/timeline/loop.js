// Frames: drawn only when something changed, or while the window moves by itself (a glide to a place, or live).
//
// Who asked for less motion gets the end of a glide at once, and live steps once a second.

import { bounded, spanOf } from "./window.js";

const GLIDE_MS = 200;
const FOLLOW_MS = 250; // live closes two thirds of what is missing in this time
const LEAST_MOVE_PX = 0.5; // less is not worth a frame
const CALM_STEP_MS = 1000;

/**
 * {dirty(), glide(window), halt(), running}: `model` has {window, live, width_px}; `liveEnd()` is where live goes,
 * `draw()` paints.
 */
export function loop(model, { liveEnd, draw }) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    let wanted = null; // the id of the next frame
    let changed = false;
    let glide = null; // {from, to, start_ms}
    let before_ms = 0;
    let stopped = true;

    const schedule = () => {
        if (wanted === null && !stopped) wanted = requestAnimationFrame(frame);
    };

    function frame(now_ms) {
        wanted = null;
        if (stopped || model.window === null) return;
        const passed_ms = Math.min(100, now_ms - before_ms);
        if (glide !== null) stepGlide(now_ms);
        else if (model.live) stepLive(now_ms, passed_ms);
        if (changed) {
            before_ms = now_ms;
            changed = false;
            draw();
        }
        if (glide !== null || model.live) schedule();
    }

    function stepGlide(now_ms) {
        const share = Math.min(1, (now_ms - glide.start_ms) / GLIDE_MS);
        const eased = 1 - (1 - share) ** 3;
        const mix = (a, b) => a + (b - a) * eased;
        model.window =
            share === 1 ? glide.to : bounded(mix(glide.from.from_us, glide.to.from_us), mix(glide.from.to_us, glide.to.to_us));
        changed = true;
        if (share === 1) glide = null;
    }

    function stepLive(now_ms, passed_ms) {
        const end_us = liveEnd();
        if (end_us === null) return;
        const missing_us = end_us - model.window.to_us;
        const us_px = spanOf(model.window) / Math.max(1, model.width_px);
        if (Math.abs(missing_us) < LEAST_MOVE_PX * us_px) return;
        if (calm.matches && now_ms - before_ms < CALM_STEP_MS) return;
        const share = calm.matches ? 1 : 1 - Math.exp(-passed_ms / FOLLOW_MS);
        const step_us = Math.abs(missing_us) < 2 * us_px ? missing_us : missing_us * share;
        model.window = bounded(model.window.from_us + step_us, model.window.to_us + step_us);
        changed = true;
    }

    return {
        dirty() {
            changed = true;
            schedule();
        },
        glide(to) {
            if (calm.matches || model.window === null) model.window = to;
            else glide = { from: model.window, to, start_ms: performance.now() };
            changed = true;
            schedule();
        },
        /** The window a glide ends at, so that quick presses of a button add up. */
        target: () => glide?.to ?? model.window,
        halt() {
            glide = null;
        },
        start() {
            stopped = false;
            schedule();
        },
        stop() {
            stopped = true;
            glide = null;
            if (wanted !== null) cancelAnimationFrame(wanted);
            wanted = null;
        },
    };
}
