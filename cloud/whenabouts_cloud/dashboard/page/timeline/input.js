// Hands on the canvas: pointers, wheel and keys become moves of the view.
//
// One pointer drags, two pinch; a drag of less than CLICK_PX is a click. Positions are relative to the canvas, whose
// place is asked for once when a pointer comes down or moves alone, never while the view is drawn.

const CLICK_PX = 5;
const WHEEL_ZOOM = 0.0016; // a notch of 100 is a factor of 1.17
const LINE_PX = 24;
const BUTTON_ZOOM = 2;

/** `actions`: {pan(share), drag(dx, dy), zoom(factor, x), scroll(px), all(), latest(), lane(step), reading(step), open(), close(), hover(x, y), leave(), click(x, y), grab()} */
export function listen(canvas, actions) {
    const pointers = new Map(); // id to {x, y}
    let moved = 0;
    let place = null;

    const at = (event) => {
        place ??= canvas.getBoundingClientRect();
        return { x: event.clientX - place.left, y: event.clientY - place.top };
    };

    canvas.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        place = null;
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, at(event));
        if (pointers.size === 1) moved = 0;
        actions.leave();
    });

    canvas.addEventListener("pointermove", (event) => {
        const now = at(event);
        if (!pointers.has(event.pointerId)) {
            if (event.pointerType !== "touch") actions.hover(now.x, now.y);
            return;
        }
        const before = pointers.get(event.pointerId);
        if (pointers.size === 1) {
            moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
            if (moved > CLICK_PX) {
                canvas.classList.add("held");
                actions.drag(now.x - before.x, now.y - before.y);
            }
        } else {
            moved = CLICK_PX + 1;
            pinch(pointers, event.pointerId, now, actions);
        }
        pointers.set(event.pointerId, now);
    });

    const release = (event) => {
        if (!pointers.delete(event.pointerId)) return;
        canvas.classList.remove("held");
        if (event.type === "pointerup" && pointers.size === 0 && moved <= CLICK_PX) {
            const { x, y } = at(event);
            actions.click(x, y);
        }
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => actions.leave());
    canvas.addEventListener("pointerenter", () => {
        place = null;
    });
    addEventListener("scroll", () => (place = null), { passive: true, capture: true });
    addEventListener("resize", () => (place = null));

    canvas.addEventListener("dblclick", (event) => {
        event.preventDefault();
        actions.glide(event.shiftKey ? 3 : 1 / 3, at(event).x);
    });
    canvas.addEventListener("wheel", (event) => onWheel(event, at(event), actions), { passive: false });
    canvas.addEventListener("keydown", (event) => {
        if (onKey(event, actions)) event.preventDefault();
    });
}

function pinch(pointers, moving, now, actions) {
    const [otherId] = [...pointers.keys()].filter((id) => id !== moving);
    const other = pointers.get(otherId);
    const before = pointers.get(moving);
    const wide = (a, b) => Math.max(12, Math.abs(a.x - b.x));
    const middle = (now.x + other.x) / 2;
    actions.drag(middle - (before.x + other.x) / 2, (now.y - before.y) / 2);
    actions.zoom(wide(before, other) / wide(now, other), middle);
}

function onWheel(event, { x, y }, actions) {
    const unit = event.deltaMode === 1 ? LINE_PX : event.deltaMode === 2 ? 400 : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    event.preventDefault();
    if (event.shiftKey || actions.inLabels(x)) actions.scroll(dy || dx);
    else if (Math.abs(dx) > Math.abs(dy)) actions.drag(-dx, 0);
    else actions.zoom(Math.exp(Math.max(-400, Math.min(400, dy)) * WHEEL_ZOOM * (event.ctrlKey ? 4 : 1)), x, y);
}

/** True if the key was one of ours. */
function onKey(event, actions) {
    if (event.ctrlKey || event.metaKey) return false;
    const far = event.shiftKey ? 0.5 : 0.1;
    const keys = {
        ArrowLeft: () => (event.altKey ? actions.reading(-1) : actions.pan(-far)),
        ArrowRight: () => (event.altKey ? actions.reading(1) : actions.pan(far)),
        ArrowUp: () => actions.lane(-1),
        ArrowDown: () => actions.lane(1),
        PageUp: () => actions.pan(-1),
        PageDown: () => actions.pan(1),
        "+": () => actions.glide(1 / BUTTON_ZOOM),
        "=": () => actions.glide(1 / BUTTON_ZOOM),
        "-": () => actions.glide(BUTTON_ZOOM),
        Home: () => actions.all(),
        End: () => actions.latest(),
        Enter: () => actions.open(),
        Escape: () => actions.close(),
    };
    if (!Object.hasOwn(keys, event.key)) return false;
    keys[event.key]();
    return true;
}
