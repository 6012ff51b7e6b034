// Ticks of a time axis, from decades to a microsecond, in UTC: pure, from a window and a width to texts at times.
//
// The step is the smallest round one whose labels do not touch. Steps of months and more follow the calendar.

import { clock, day, DAY_US, HOUR_US, MINUTE_US, MS_US, SECOND_US } from "../format.js";
import { spanOf } from "./window.js";

const MONTH_US = 30.44 * DAY_US;

const STEPS_US = [
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((step) => step * MS_US),
    ...[1, 2, 5, 10, 15, 30].map((step) => step * SECOND_US),
    ...[1, 2, 5, 10, 15, 30].map((step) => step * MINUTE_US),
    ...[1, 2, 3, 6, 12].map((step) => step * HOUR_US),
    ...[1, 2, 5, 10].map((step) => step * DAY_US),
];
const STEPS_MONTHS = [1, 2, 3, 6, 12, 24, 60, 120];

const LETTER_PX = 6.6;
const GAP_PX = 26;

/** {step_us, ticks: [{us, text}]}: at most width / 60 or so. */
export function ticksOf(window, width_px) {
    const us_px = spanOf(window) / Math.max(1, width_px);
    const step_us = STEPS_US.find((step) => step / us_px >= labelWidth(step));
    if (step_us !== undefined) return { step_us, ticks: evenTicks(window, step_us) };
    const months = STEPS_MONTHS.find((step) => (step * MONTH_US) / us_px >= labelWidth(step * MONTH_US));
    return calendarTicks(window, months ?? STEPS_MONTHS[STEPS_MONTHS.length - 1]);
}

/** What the labels leave out: the day, for ticks within days. */
export function contextOf(us, step_us) {
    return step_us >= DAY_US ? "" : day(us);
}

function labelWidth(step_us) {
    return labelOf(1.7e15, step_us).length * LETTER_PX + GAP_PX;
}

function labelOf(us, step_us) {
    if (step_us >= 11 * MONTH_US) return day(us).slice(0, 4);
    if (step_us >= 27 * DAY_US) return day(us).slice(0, 7);
    return step_us >= DAY_US ? day(us) : clock(us, step_us);
}

function evenTicks({ from_us, to_us }, step_us) {
    const ticks = [];
    for (let us = Math.ceil(from_us / step_us) * step_us; us <= to_us; us += step_us) {
        ticks.push({ us, text: labelOf(us, step_us) });
    }
    return ticks;
}

function calendarTicks({ from_us, to_us }, months) {
    const first = new Date(from_us / MS_US);
    let month = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
    const ticks = [];
    for (; ; month += months) {
        const us = Date.UTC(Math.floor(month / 12), month % 12) * MS_US;
        if (us > to_us) break;
        if (us >= from_us) ticks.push({ us, text: labelOf(us, months * MONTH_US) });
    }
    return { step_us: months * MONTH_US, ticks };
}
