// News from the server: which of its versions grew. The page goes on by itself after the server was away.
//
// A browser gives up an event source for some ends of a connection and not for others; here every end closes it, and
// a new one is opened after a delay that grows to a bound.

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 4000;

/** Calls `heard({landing, results, health, rules})` at each news and `connection("open" | "lost")` at each change. */
export function follow(url, { heard, connection }) {
    let delay_ms = FIRST_DELAY_MS;
    let state = "opening";
    const become = (next) => {
        if (state === next) return;
        state = next;
        connection(next);
    };
    const open = () => {
        const source = new EventSource(url);
        source.addEventListener("open", () => {
            delay_ms = FIRST_DELAY_MS;
            become("open");
        });
        source.addEventListener("news", (event) => {
            become("open");
            const versions = parsed(event.data);
            if (versions !== null) heard(versions);
        });
        source.addEventListener("error", () => {
            source.close();
            become("lost");
            setTimeout(open, delay_ms);
            delay_ms = Math.min(LONGEST_DELAY_MS, 2 * delay_ms);
        });
    };
    open();
}

function parsed(text) {
    try {
        const value = JSON.parse(text);
        return value !== null && typeof value === "object" ? value : null;
    } catch {
        return null;
    }
}
