// Times, durations, sizes, numbers and foreign texts as people read them.
//
// Times are UTC with as many digits as the step between two of them needs. A foreign text (a key, a name) may hold
// anything: what would steer the page's text (controls, marks of direction, lone surrogates) is written as an escape.

export const MS_US = 1000;
export const SECOND_US = 1000 * MS_US;
export const MINUTE_US = 60 * SECOND_US;
export const HOUR_US = 60 * MINUTE_US;
export const DAY_US = 24 * HOUR_US;

export const NOTHING = "–";

const LAST_DATE_US = 8.64e18 / 1000; // the last time a Date can hold

/** Digits after the second's point that tell times apart which differ by `step_us`: 0 to 6. */
export function digits(step_us) {
    if (!(step_us > 0) || step_us >= SECOND_US) return 0;
    return Math.min(6, Math.max(1, Math.ceil(6 - Math.log10(step_us) - 1e-9)));
}

/** `2026-11-26 19:59:02.123456`; fewer digits if the step between times is greater. */
export function time(us, step_us = 1) {
    if (!isTime(us)) return NOTHING;
    return step_us >= DAY_US ? day(us) : `${day(us)} ${clock(us, step_us)}`;
}

/** `2026-11-26` */
export function day(us) {
    return isTime(us) ? isoText(us).split("T")[0] : NOTHING;
}

/** `19:59:02.1235`: the time of the day. */
export function clock(us, step_us = 1) {
    if (!isTime(us)) return NOTHING;
    const text = isoText(us).split("T")[1];
    if (step_us >= MINUTE_US) return text.slice(0, 5);
    const places = digits(step_us);
    if (places === 0) return text.slice(0, 8);
    const within = us - Math.floor(us / SECOND_US) * SECOND_US;
    return `${text.slice(0, 8)}.${String(Math.floor(within)).padStart(6, "0").slice(0, places)}`;
}

/** Two times with the day once, if it is the day of both: `2026-11-26 19:59:02 – 19:59:32`. */
export function span(from_us, to_us) {
    const step_us = Math.max(1, (to_us - from_us) / 1000);
    const same = day(from_us) === day(to_us);
    return `${time(from_us, step_us)} – ${same ? clock(to_us, step_us) : time(to_us, step_us)}`;
}

const UNITS = [
    ["d", DAY_US],
    ["h", HOUR_US],
    ["min", MINUTE_US],
    ["s", SECOND_US],
    ["ms", MS_US],
    ["us", 1],
];

/** `340 us`, `1.25 ms`, `12.5 s`, `3.2 h`, `14 d`: three digits, which is what widths are good for. */
export function duration(us) {
    if (typeof us !== "number" || !Number.isFinite(us)) return NOTHING;
    const size = Math.abs(us);
    const [unit, in_us] = UNITS.find(([, least]) => size >= least) ?? UNITS[UNITS.length - 1];
    return `${us < 0 ? "−" : ""}${threeDigits(size / in_us)} ${unit}`;
}

/** `3 s ago`, `in 2 min`, for an age in microseconds. */
export function ago(age_us) {
    if (typeof age_us !== "number" || !Number.isFinite(age_us)) return NOTHING;
    if (Math.abs(age_us) < SECOND_US) return "now";
    return age_us > 0 ? `${duration(wholeSeconds(age_us))} ago` : `in ${duration(wholeSeconds(-age_us))}`;
}

/** `12.5 kB`, `3.2 GB` (thousands). */
export function size(bytes) {
    if (typeof bytes !== "number" || !Number.isFinite(bytes)) return NOTHING;
    let value = bytes;
    for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
        if (value < 1000) return `${threeDigits(value)} ${unit}`;
        value /= 1000;
    }
    return `${threeDigits(value)} PB`;
}

/** `1 234 567` with thin spaces; other numbers with their digits. */
export function count(number) {
    if (typeof number !== "number" || !Number.isFinite(number)) return NOTHING;
    if (!Number.isInteger(number)) return threeDigits(number);
    return String(number).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

/** `1 reading`, `12 readings` */
export function counted(number, one, many = `${one}s`) {
    return `${count(number)} ${number === 1 ? one : many}`;
}

/** `97 %`, `99.97 %`: never 100 % for less than all, never 0 % for more than nothing. */
export function percent(share) {
    if (typeof share !== "number" || !Number.isFinite(share)) return NOTHING;
    for (const places of [0, 1, 2, 3, 4]) {
        const text = (share * 100).toFixed(places);
        const told = Number(text);
        if ((told < 100 || share >= 1) && (told > 0 || share <= 0)) return `${text} %`;
    }
    return share > 0.5 ? "> 99.9999 %" : "< 0.0001 %";
}

// Controls, marks that turn or hide text, separators of lines, private and lone halves.
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;

/** A foreign text for display: at most `most` characters, what would steer the display as escapes. */
export function shown(text, most = 80) {
    if (text === null || text === undefined) return NOTHING;
    const whole = String(text);
    const letters = Array.from(whole.slice(0, 2 * most + 2));
    const cut = letters.length > most || whole.length > 2 * most + 2;
    const kept = (cut ? letters.slice(0, most - 1) : letters).join("");
    return kept.replace(STEERING, escaped) + (cut ? "…" : "");
}

function escaped(letter) {
    return `\\u{${letter.codePointAt(0).toString(16)}}`;
}

function threeDigits(value) {
    if (value >= 100 || Number.isInteger(value)) return count(Math.round(value));
    return String(Number(value.toPrecision(3)));
}

function wholeSeconds(us) {
    return us < MINUTE_US ? Math.round(us / SECOND_US) * SECOND_US : us;
}

function isTime(us) {
    return typeof us === "number" && Math.abs(us) <= LAST_DATE_US;
}

function isoText(us) {
    return new Date(Math.floor(us / MS_US)).toISOString();
}
