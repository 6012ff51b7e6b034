// What stands in the timeline's place while there is nothing to draw: what is missing, and what to do.

import { percent, shown } from "../format.js";
import { element } from "../parts.js";

/** An element for an overview without readings; null for an overview that has some. */
export function emptyText(overview) {
    if (overview === null) {
        return box("The server does not answer", [
            "This page asks the server that served it, and goes on by itself when it answers again.",
            "Is the command whenabouts-cloud dashboard still running?",
        ]);
    }
    if (overview.readings > 0) return null;
    const place = `Looked in: ${shown(overview.landing, 300)}`;
    if (overview.counted < 1 && overview.files > 0) {
        return box("Reading the landing", [place, `${percent(overview.counted)} of its files are counted.`]);
    }
    return box("No readings have landed yet", [
        place,
        "Readings land when gateways send them to a broker and an ingest writes them to this place: whenabouts-cloud ingest.",
        "If they should be here: is the address right, does the ingest run (see Health), do gateways report (see Gateways)?",
        "This page shows the first reading as soon as it has landed.",
    ]);
}

function box(title, lines) {
    return element(
        "div",
        { className: "panel empty" },
        element("h3", { textContent: title }),
        ...lines.map((line) => element("p", { textContent: line })),
    );
}
