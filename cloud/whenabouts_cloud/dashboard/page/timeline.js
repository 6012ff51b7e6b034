export function view(section, app) {
    const text = section.appendChild(document.createElement("p"));
    return {
        show() {
            text.textContent = app.overview === null ? "no answer yet" : "";
        },
        news() {},
        hide() {},
    };
}
