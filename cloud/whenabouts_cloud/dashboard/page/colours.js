// The page's colours for canvases: read once from the style sheet, and again when the theme changes.
//
// Asking for a computed style costs a layout, so no drawing loop may do it: it takes `palette()`, a kept value.

const NAMES = [
    "ground", "panel", "line", "line-strong", "text", "text-soft", "accent", "late", "true", "now", "frontier",
    "bar", "bar-edge", "bar-chosen", "shade", "good", "warn", "bad",
];
const RULES = 7;

let kept = null;

document.addEventListener("themechange", () => {
    kept = null;
});

/** {ground, panel, …, rules: [colour], font, fontMono, dark} */
export function palette() {
    if (kept === null) kept = read();
    return kept;
}

/** The colour of a rule: by its place among the names, so that it stays while the names stay. */
export function ruleColour(names, name) {
    const colours = palette().rules;
    const place = names.indexOf(name);
    return colours[(place < 0 ? names.length : place) % colours.length];
}

function read() {
    const style = getComputedStyle(document.documentElement);
    const colours = {};
    for (const name of NAMES) {
        const key = name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
        colours[key] = style.getPropertyValue(`--${name}`).trim();
    }
    colours.rules = Array.from({ length: RULES }, (_, index) => style.getPropertyValue(`--rule-${index}`).trim());
    colours.heat = Array.from({ length: 8 }, (_, index) => style.getPropertyValue(`--heat-${index}`).trim());
    colours.font = style.getPropertyValue("--font").trim();
    colours.dark = style.getPropertyValue("--dark").trim() === "1";
    return colours;
}
