// The timeline's toolbar: what is shown in words, buttons for every move, what is filtered, and exports.

import { address } from "../api.js";
import { duration, shown, span } from "../format.js";
import { button, element, menu } from "../parts.js";
import { spanOf, whole } from "./window.js";

const SEARCH_AFTER_MS = 300;

/** {element, tell(model), tellRules(names, isShown), exports} */
export function toolbar(actions, tableButton) {
    const live = button("Live", "Follow the present", actions.live, { "data-action": "live" });
    const byReader = button("By reader", "By reader", () => actions.by("reader"), { "data-action": "by-reader" });
    const byTag = button("By tag", "By tag", () => actions.by("tag"), { "data-action": "by-tag" });
    const search = searchField(actions);
    const range = element("output", { className: "range", "aria-label": "Time shown" });
    const rules = menu("Rules");
    const exported = exportMenu(actions);
    tableButton.classList.add("table-button");
    const whole_ = element(
        "div",
        { className: "toolbar", role: "toolbar", "aria-label": "Timeline" },
        element(
            "div",
            { className: "group" },
            button("‹", "Earlier", () => actions.pan(-0.5), { "data-action": "earlier" }),
            button("›", "Later", () => actions.pan(0.5), { "data-action": "later" }),
        ),
        element(
            "div",
            { className: "group" },
            button("−", "Zoom out", () => actions.glide(2), { "data-action": "zoom-out" }),
            button("+", "Zoom in", () => actions.glide(1 / 2), { "data-action": "zoom-in" }),
        ),
        element("div", { className: "group" }, button("All", "Show all that landed", actions.all, { "data-action": "all" }), live),
        range,
        element("div", { className: "group" }, byReader, byTag),
        search,
        rules,
        tableButton,
        exported.element,
    );
    return {
        element: whole_,
        tell(model) {
            range.replaceChildren(
                element("strong", { textContent: span(model.window.from_us, model.window.to_us) }),
                element("span", { textContent: ` UTC · ${duration(spanOf(model.window))}` }),
            );
            live.setAttribute("aria-pressed", String(model.live));
            byReader.setAttribute("aria-pressed", String(model.by === "reader"));
            byTag.setAttribute("aria-pressed", String(model.by === "tag"));
            if (document.activeElement !== search && search.value !== model.search) search.value = model.search;
            search.placeholder = model.by === "tag" ? "Find a tag" : "Find a reader";
            exported.tell(model);
        },
        tellRules: (names, isShown) => fillRules(rules, names, isShown, actions),
    };
}

function searchField(actions) {
    const search = element("input", { type: "search", maxLength: 200, "aria-label": "Find readers or tags" });
    let timer = null;
    search.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => actions.search(search.value.trim()), SEARCH_AFTER_MS);
    });
    return search;
}

function fillRules(rules, names, isShown, actions) {
    const body = rules.querySelector(".menu-body");
    rules.hidden = names.length === 0;
    const told = names.filter(isShown).length;
    rules.querySelector("summary").textContent = told === names.length ? "Rules" : `Rules ${told}/${names.length}`;
    const key = names.join("\n");
    if (body.dataset.names !== key) {
        body.dataset.names = key;
        body.replaceChildren(
            ...names.map((name) => {
                const box = element("input", { type: "checkbox", value: name });
                box.addEventListener("change", () => actions.rule(name, box.checked));
                return element("label", {}, box, element("span", { className: "swatch", "data-rule": name }), shown(name));
            }),
        );
    }
    for (const box of body.querySelectorAll("input")) box.checked = isShown(box.value);
}

function exportMenu(actions) {
    const links = {
        svg: element("a", { textContent: "Picture, SVG", download: "timeline.svg" }),
        csv: element("a", { textContent: "Data, CSV", download: "timeline.csv" }),
        parquet: element("a", { textContent: "Data, Parquet", download: "timeline.parquet" }),
    };
    const made = menu(
        "Export",
        button("Copy link", "Copy link", () => actions.copyLink(), { className: "item" }),
        button("Picture, PNG", "Picture, PNG", () => actions.savePicture(), { className: "item", "data-action": "png" }),
        ...Object.values(links),
    );
    made.classList.add("at-right");
    return {
        element: made,
        tell(model) {
            const { from_us: from, to_us: to } = whole(model.window);
            const parameters = { from, to, px: model.width_px, ...model.parameters };
            const picture = { width: model.size.width, height: model.size.height, theme: model.dark ? "dark" : "light" };
            links.svg.href = address("/api/picture.svg", { ...parameters, ...picture });
            links.csv.href = address("/api/export.csv", parameters);
            links.parquet.href = address("/api/export.parquet", parameters);
        },
    };
}
