// A view and its state as the page's address: `#timeline?from=..&to=..`. A link restores what was seen.
//
// Values are texts; a view reads its numbers from them with `wholeNumber`, which takes nothing that is no time.

export const VIEWS = ["timeline", "gateways", "rules", "why-not", "health"];

const LONGEST_VALUE = 4000; // an address that was made by hand must not fill the page

/** The view and the state (name to text) that an address names; an unknown view is the timeline. */
export function parseLink(hash) {
    const text = hash.replace(/^#/, "");
    const cut = text.indexOf("?");
    const name = cut < 0 ? text : text.slice(0, cut);
    const state = {};
    if (cut >= 0) {
        for (const [key, value] of new URLSearchParams(text.slice(cut + 1))) state[key] = value.slice(0, LONGEST_VALUE);
    }
    return { view: VIEWS.includes(name) ? name : "timeline", state };
}

/** The address of a view in a state; what is null, undefined or empty is left out. */
export function formatLink(view, state = {}) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
        if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
    }
    const text = query.toString();
    return text ? `#${view}?${text}` : `#${view}`;
}

/** A whole number in a text of a state, or null. */
export function wholeNumber(text) {
    if (typeof text !== "string" || !/^-?\d{1,16}$/.test(text)) return null;
    const number = Number(text);
    return Number.isSafeInteger(number) ? number : null;
}
