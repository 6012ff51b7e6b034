// Tables: the accessible form of every picture, and the plain form of every list.
//
// A picture's table stands right behind it in the tree, hidden from sight but not from a screen reader, until the
// button "Show as table" is pressed. Rows are bounded; the caption says how many there are.

import { count, shown } from "./format.js";

export const MOST_ROWS = 2000; // a table of a picture; more would slow the page and nobody reads on

const LONGEST_CELL = 200;

/**
 * A table of rows. `columns`: [{title, number?}], each row: a list of cells, each a text, a number, null, a node, or
 * {text, href?, class?, title?, action?} (`action`: a function that a button in the cell calls).
 */
export function table({ caption, columns, rows, total = rows.length, most = MOST_ROWS }) {
    const whole = document.createElement("table");
    fillTable(whole, { caption, columns, rows, total, most });
    return whole;
}

/** Replaces what a table holds; arguments as for `table`. The button or link that had the focus has it again. */
export function fillTable(whole, { caption, columns, rows, total = rows.length, most = MOST_ROWS }) {
    const focused = whole.contains(document.activeElement) ? document.activeElement.textContent : null;
    const head = document.createElement("thead");
    const titles = head.appendChild(document.createElement("tr"));
    for (const column of columns) {
        const cell = titles.appendChild(document.createElement("th"));
        cell.scope = "col";
        cell.textContent = column.title;
        if (column.number) cell.className = "number";
    }
    const body = document.createElement("tbody");
    for (const row of rows.slice(0, most)) body.append(tableRow(columns, row));
    const told = document.createElement("caption");
    const kept = Math.min(rows.length, most);
    told.textContent = total > kept ? `${caption} (${count(kept)} of ${count(total)})` : caption;
    whole.replaceChildren(told, head, body);
    if (focused === null) return;
    const again = [...whole.querySelectorAll("button, a")].find((one) => one.textContent === focused);
    again?.focus({ preventScroll: true });
}

/**
 * The tables behind a picture: `{button, wrap, set(content, …)}`, a content for each: {caption, columns, rows, total}.
 * They go right behind the picture; the button goes where the view wants it.
 */
export function tableBehind(picture, { label = "Show as table" } = {}) {
    const wrap = document.createElement("div");
    wrap.className = "behind visually-hidden";
    wrap.tabIndex = -1;
    picture.after(wrap);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
        const hidden = wrap.classList.toggle("visually-hidden");
        button.setAttribute("aria-pressed", String(!hidden));
    });
    return { button, wrap, set: (...contents) => fillTables(wrap, contents) };
}

function fillTables(wrap, contents) {
    while (wrap.children.length > contents.length) wrap.lastChild.remove();
    contents.forEach((content, index) => {
        fillTable(wrap.children[index] ?? wrap.appendChild(document.createElement("table")), content);
    });
}

function tableRow(columns, row) {
    const line = document.createElement("tr");
    columns.forEach((column, index) => {
        const cell = line.appendChild(document.createElement(column.heads ? "th" : "td"));
        if (column.heads) cell.scope = "row";
        if (column.number) cell.className = "number";
        fillCell(cell, row[index]);
    });
    return line;
}

function fillCell(cell, content) {
    if (content instanceof Node) {
        cell.append(content);
        return;
    }
    if (content === null || content === undefined || typeof content !== "object") {
        cell.textContent = cellText(content);
        return;
    }
    if (content.class) cell.classList.add(...content.class.split(" "));
    if (content.title) cell.title = shown(content.title, LONGEST_CELL);
    if (content.href) {
        const link = cell.appendChild(document.createElement("a"));
        link.href = content.href;
        link.textContent = cellText(content.text);
    } else if (content.action) {
        const button = cell.appendChild(document.createElement("button"));
        button.type = "button";
        button.className = "plain";
        button.textContent = cellText(content.text);
        button.addEventListener("click", content.action);
    } else {
        cell.textContent = cellText(content.text);
    }
}

function cellText(value) {
    return typeof value === "number" ? count(value) : shown(value, LONGEST_CELL);
}
