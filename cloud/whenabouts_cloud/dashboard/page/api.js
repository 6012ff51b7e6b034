// Questions to the server that served this page: JSON in, JSON out, and an error that a person can read.
//
// A view asks through a `slot`: a newer question in a slot ends the older one, so that answers never arrive in the
// wrong order and a server is not kept busy with pictures that nobody sees any more.

/** A question that has no answer: `status` is 0 if the server was not reached. */
export class ApiError extends Error {
    constructor(status, text) {
        super(text);
        this.name = "ApiError";
        this.status = status;
    }
}

/** True for the end of a question that was replaced by a newer one: nothing to tell anybody. */
export function wasReplaced(error) {
    return error instanceof DOMException && error.name === "AbortError";
}

/** The address of a question: `/api/timeline?from=1&to=2`; null, undefined and empty parameters are left out. */
export function address(path, parameters = {}) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(parameters)) {
        if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
    }
    const text = query.toString();
    return text ? `${path}?${text}` : path;
}

export function get(path, parameters, signal) {
    return ask(address(path, parameters), { signal, headers: { accept: "application/json" } });
}

export function post(path, body, signal) {
    return ask(path, {
        method: "POST",
        signal,
        headers: { "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify(body),
    });
}

/** A place for one question at a time: `get` and `post` as above, and `stop`. */
export function slot() {
    let running = null;
    const next = () => {
        running?.abort();
        running = new AbortController();
        return running.signal;
    };
    return {
        get: (path, parameters) => get(path, parameters, next()),
        post: (path, body) => post(path, body, next()),
        stop: () => running?.abort(),
    };
}

async function ask(url, options) {
    let answer;
    try {
        answer = await fetch(url, { cache: "no-store", ...options });
    } catch (error) {
        if (wasReplaced(error)) throw error;
        throw new ApiError(0, "the server does not answer");
    }
    const text = await answer.text();
    let value;
    try {
        value = JSON.parse(text);
    } catch {
        throw new ApiError(answer.status, `the server answered ${answer.status} with no JSON`);
    }
    if (!answer.ok) throw new ApiError(answer.status, String(value?.error ?? `the server answered ${answer.status}`));
    return value;
}
