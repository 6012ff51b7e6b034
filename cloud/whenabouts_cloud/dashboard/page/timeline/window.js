// The time that is shown: {from_us, to_us}, and how it moves. Pure: every function returns a new window.
//
// Ends are numbers, not whole microseconds, while a hand moves them; `whole` rounds them for questions and links.

import { DAY_US } from "../format.js";

export const LEAST_SPAN_US = 20; // at 0.02 us a pixel a number of our century has no more digits
export const MOST_SPAN_US = 40 * 366 * DAY_US;

const EARLIEST_US = -2.2e15; // the year 1900
const LATEST_US = 8.9e15; // the year 2252: whole microseconds are exact numbers until then

export function spanOf({ from_us, to_us }) {
    return to_us - from_us;
}

/** A window within what can be shown. */
export function bounded(from_us, to_us) {
    const span_us = Math.min(MOST_SPAN_US, Math.max(LEAST_SPAN_US, to_us - from_us));
    const middle_us = (from_us + to_us) / 2;
    const least_us = Math.min(LATEST_US - span_us, Math.max(EARLIEST_US, middle_us - span_us / 2));
    return { from_us: least_us, to_us: least_us + span_us };
}

/** Moved by a share of its span: 1 is a whole window later. */
export function panned(window, share) {
    const step_us = spanOf(window) * share;
    return bounded(window.from_us + step_us, window.to_us + step_us);
}

/** Its span times `factor`, with `at_us` where it was on the screen. */
export function zoomed(window, factor, at_us = (window.from_us + window.to_us) / 2) {
    const span_us = Math.min(MOST_SPAN_US, Math.max(LEAST_SPAN_US, spanOf(window) * factor));
    const share = (at_us - window.from_us) / spanOf(window);
    const from_us = at_us - share * span_us;
    return bounded(from_us, from_us + span_us);
}

/** All from first to last, with some room at both sides. */
export function around(first_us, last_us, room = 0.03) {
    const margin_us = Math.max(LEAST_SPAN_US, (last_us - first_us) * room);
    return bounded(first_us - margin_us, last_us + margin_us);
}

/** The whole microseconds that a window touches. */
export function whole(window) {
    return { from_us: Math.floor(window.from_us), to_us: Math.ceil(window.to_us) };
}

export function contains(outer, inner) {
    return outer.from_us <= inner.from_us && outer.to_us >= inner.to_us;
}
