// Tiles: answers of the server that are wider than the view, so that a hand can move while the next one is on its way.
//
// A tile's columns are a power of two of microseconds wide and begin at multiples of their width: counts do not flicker
// from tile to tile, and the server, whose counts are kept in such stretches, answers exactly. A question is asked at most every ASK_EVERY_MS, and ended when it is of no use for what is shown by then.
// MOST_TILES are kept: the page never holds more than a few screens.

import { get, wasReplaced } from "../api.js";
import { contains, spanOf } from "./window.js";

export const ASK_EVERY_MS = 150;
export const REFRESH_EVERY_MS = 500;
export const LANES = 50; // a page of lanes

const MOST_TILES = 6;
const MOST_COLUMNS = 4000; // the server's limit
const EARLY = 0.1; // of the view: the next tile is asked for before the edge of this one is seen
const RETRY_MS = 1000;

/** The width of a column: about a pixel. */
function columnFor(window, width_px) {
    const span_us = spanOf(window);
    const about_a_pixel = Math.round(Math.log2(Math.max(1, span_us / width_px)));
    const few_enough = Math.ceil(Math.log2(Math.max(1, (2.4 * span_us) / MOST_COLUMNS)));
    return 2 ** Math.max(0, about_a_pixel, few_enough);
}

/** The tile for a window: {from_us, to_us, px}, half a view more on each side, in columns of whole microseconds. */
export function tileFor(window, width_px) {
    const span_us = spanOf(window);
    const column_us = columnFor(window, width_px);
    const step_us = column_us * Math.max(1, Math.round(span_us / column_us / 8));
    const from_us = Math.floor((window.from_us - span_us / 2) / step_us) * step_us;
    const px = Math.max(1, Math.min(MOST_COLUMNS, Math.ceil((window.to_us + span_us / 2 - from_us) / column_us)));
    return { from_us, to_us: from_us + px * column_us, px };
}

/** True if a tile shows all there is to see in a window. */
export function serves(tile, window, width_px) {
    if (!contains(tile, window)) return false;
    if (tile.answer.bars !== null && tile.answer.arcs.total <= tile.answer.arcs.id.length) return true;
    return spanOf(tile) / tile.px <= columnFor(window, width_px);
}

/**
 * Tiles of a view: `{best(window), want(request), stale(), forget(), stop()}`.
 *
 * `request`: {window, width_px, parameters}. `prepare(answer, tile)` makes of an answer what is kept;
 * `changed()` is called when something arrived, `failed(error | null)` when it did not.
 */
export function tiles({ prepare, changed, failed }) {
    let kept = []; // the newest first
    let asking = null; // {tile, signature, abort}
    let wanted = null;
    let timer = null;
    let last_ms = -Infinity;
    let generation = 0; // grows when what has landed grew

    const signatureOf = (request) => JSON.stringify(request.parameters);

    function best(window, signature) {
        const same = kept.filter((tile) => tile.signature === signature);
        const usable = same.length ? same : kept.slice(0, 1); // old lanes are better than nothing for a moment
        return (
            usable.filter((tile) => contains(tile, window)).sort((a, b) => spanOf(a) - spanOf(b))[0] ??
            usable.filter((tile) => tile.from_us < window.to_us && tile.to_us > window.from_us)[0] ??
            usable[0] ??
            null
        );
    }

    function want(request) {
        wanted = request;
        if (timer !== null) return;
        if (!needed(request)) return;
        timer = setTimeout(ask, Math.max(0, last_ms + ASK_EVERY_MS - performance.now()));
    }

    function needed(request) {
        const signature = signatureOf(request);
        const grown = {
            from_us: request.window.from_us - EARLY * spanOf(request.window),
            to_us: request.window.to_us + EARLY * spanOf(request.window),
        };
        const good = (tile) => tile.generation === generation && tile.signature === signature;
        if (kept.some((tile) => good(tile) && serves(tile, grown, request.width_px))) return false;
        return !(asking !== null && good(asking) && contains(asking.tile, grown) && fine(asking.tile, request));
    }

    function fine(tile, { window, width_px }) {
        return spanOf(tile) / tile.px <= columnFor(window, width_px);
    }

    async function ask() {
        timer = null;
        const request = wanted;
        if (request === null || !needed(request)) return;
        if (asking !== null && mayFinish(asking, request)) {
            timer = setTimeout(ask, ASK_EVERY_MS);
            return;
        }
        asking?.abort.abort();
        const tile = tileFor(request.window, request.width_px);
        const mine = { tile, signature: signatureOf(request), generation, abort: new AbortController() };
        asking = mine;
        last_ms = performance.now();
        const { from_us: from, to_us: to, px } = tile;
        try {
            const answer = await get("/api/timeline", { from, to, px, ...request.parameters }, mine.abort.signal);
            keep({ ...prepare(answer), ...tile, signature: mine.signature, generation: mine.generation });
            failed(null);
        } catch (error) {
            if (wasReplaced(error)) return;
            failed(error);
            if (asking === mine) setTimeout(() => wanted !== null && want(wanted), RETRY_MS);
        } finally {
            if (asking === mine) asking = null;
        }
        changed();
        if (wanted !== null) want(wanted);
    }

    /** An older question goes on while it still brings what is seen: else a steady hand would never get an answer. */
    function mayFinish(older, request) {
        return older.signature === signatureOf(request) && contains(older.tile, request.window) && fine(older.tile, request);
    }

    function keep(tile) {
        const replaced = (old) => old.signature === tile.signature && contains(tile, old) && spanOf(tile) <= 1.2 * spanOf(old);
        kept = [tile, ...kept.filter((old) => !replaced(old))].slice(0, MOST_TILES);
    }

    return {
        best: (request) => best(request.window, signatureOf(request)),
        want,
        /** True while what is shown is not yet all that there is. */
        waits: (request) => asking !== null || timer !== null || needed(request),
        /** What was kept may have grown: shown until something newer arrives. */
        stale() {
            generation += 1;
        },
        stop() {
            asking?.abort.abort();
            clearTimeout(timer);
            timer = null;
            wanted = null;
        },
    };
}
