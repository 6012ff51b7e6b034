// Small helpers to build the timeline's elements: text goes in as text only.

/** An element with properties, attributes (`aria-label`, `data-…`, `role`, `for`) and children (nodes or texts). */
export function element(name, properties = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
        if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
        else made[key] = value;
    }
    made.append(...children);
    return made;
}

export function button(text, label, action, properties = {}) {
    const made = element("button", { type: "button", textContent: text, title: label, ...properties });
    if (text !== label) made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    return made;
}

/** A menu that opens below its title and closes with Escape, or when something else is clicked. */
export function menu(title, ...children) {
    const summary = element("summary", { className: "button", textContent: title });
    const made = element("details", { className: "menu" }, summary, element("div", { className: "menu-body" }, ...children));
    made.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || !made.open) return;
        made.open = false;
        summary.focus();
    });
    document.addEventListener("pointerdown", (event) => {
        if (!made.contains(event.target)) made.open = false;
    });
    return made;
}
