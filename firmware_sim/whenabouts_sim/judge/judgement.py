"""Judgement of a run of the demonstration: its numbers, a table for people, and whether every guarantee held."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from whenabouts_sim.judge.presence_overlap import OverlapSummary
from whenabouts_sim.judge.thefts import TheftSummary
from whenabouts_sim.judge.truth import Rule, Summary


@dataclass(frozen=True)
class Lies:
    """Messages of a gateway that it published as another, by the broker's answers; what it heard that is for others."""

    attempts: int
    denied: int
    let_through: int
    overheard: int

    @property
    def in_vain(self) -> bool:
        """True if there were some, the broker denied each, and nothing was overheard."""
        return 0 < self.attempts == self.denied and not self.let_through and not self.overheard


@dataclass(frozen=True)
class Judgement:
    """Summaries of a run: of its rule of pairs, and of its thefts, its staff and its liar if the world has any."""

    rule: Rule
    summary: Summary
    thefts: TheftSummary | None = None
    staff: OverlapSummary | None = None
    lies: Lies | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and dictionaries; `thefts`, `staff` and `lies` are None without them."""
        others = {"thefts": self.thefts and self.thefts.as_dict(), "staff": self.staff and self.staff.as_dict()}
        return {**self.summary.as_dict(), **others, "lies": self.lies and asdict(self.lies)}


def table(judged: Judgement) -> str:
    """The judgement for a person."""
    s = judged.summary
    lines = [
        "",
        "                     made   landed     lost  repeated   stamp without the true time",
        f"readings         {s.made:>8} {s.landed:>8} {s.lost:>8} {s.repeated:>9}   {s.violations}",
    ]
    if s.damaged:
        how = ", ".join(f"{count} {_DAMAGE.get(reason, reason)}" for reason, count in sorted(s.damage.items()))
        lines.append(f"  of these {s.damaged_lost} did not land for a reason that lies before the agent: {how}")
    lines += [
        "",
        f"pairs within {judged.rule.d_us / 1e6:g} s          true     found     false    missed",
        f"interval stamps, 80 % sure {s.true_pairs:>5} {s.job.true_reported:>9} {s.job.false:>9} {s.job.missed:>9}",
        f"plain timestamps           {s.true_pairs:>5} {s.naive.true_reported:>9} {s.naive.false:>9} {s.naive.missed:>9}",
        "",
    ]
    if s.missed_not_landed:
        lines.append(f"{s.missed_not_landed} true pairs could not be found, their readings did not land.")
    exact = "exactly the pairs" if not (s.unexpected or s.absent) else f"{s.unexpected} more and {s.absent} fewer pairs"
    lines.append(f"The Spark job found {exact} that the rule's definition, computed in exact fractions, gives.")
    lines.append(verdict(s))
    if judged.thefts is not None:
        lines += _theft_lines(judged.thefts)
    if judged.staff is not None:
        lines += together_lines("both sites staffed at once", judged.staff)
    if judged.lies is not None:
        lines += _lie_lines(judged.lies)
    return "\n".join(lines)


_DAMAGE = {
    "late": "withheld, because this machine was too busy to play the reader in time",
    "overrun": "sent while nobody read the port",
}


def verdict(s: Summary) -> str:
    """One sentence on the errors of the plain join and the cost of the intervals."""
    if s.naive.false > s.job.false:
        return (
            f"A join on plain timestamps would have reported {s.naive.false} pairs that never happened; "
            f"with intervals {s.job.false} of {s.job.true_reported + s.job.false} reported are wrong, "
            f"and {s.job.missed} were too uncertain to be emitted."
        )
    return f"Plain timestamps gave {s.naive.false} false pairs here, interval stamps {s.job.false}."


def _theft_lines(t: TheftSummary) -> list[str]:
    """The part of the table about goods that left unpaid."""
    lines = ["", "goods that left unpaid        true     found     false    missed"]
    rows = (
        ("stamps, emitted when final", t.job),
        ("in the order of arrival", t.by_arrival),
        ("in the order of timestamps", t.by_stamp),
    )
    lines += [f"{name:<26} {t.stolen:>7} {x.true_reported:>9} {x.false:>9} {x.missed:>9}" for name, x in rows]
    exact = (
        "exactly the matches" if not (t.unexpected or t.absent) else f"{t.unexpected} more and {t.absent} fewer matches"
    )
    lines += [
        "",
        f"The Spark job emitted {exact} that the definition of SEQ(shelf, !till, exit) gives.",
        f"An engine that trusts the order of arrival would have accused {_customers(t.by_arrival.false)} who had paid: the "
        "till's gateway was cut off for a while, and its readings came late. "
        f"Ours waited until it was sure, and accused {t.job.false}.",
    ]
    return lines


def together_lines(what: str, t: OverlapSummary) -> list[str]:
    """The part of the table about posts that are all taken at once."""
    lines = ["", f"{what:<27} true     found     false    missed"]
    rows = (
        ("DEFINITELY, in Spark", t.job),
        ("plain timestamps", t.by_stamp),
        ("in the order of arrival", t.by_arrival),
    )
    lines += [f"{name:<25} {t.true_stretches:>6} {x.true_reported:>9} {x.false:>9} {x.missed:>9}" for name, x in rows]
    lines.append("")
    for one in t.misjudged:
        at = datetime.fromtimestamp(one.at_us / 1e6, UTC)
        lines.append(
            f"At {at:%H:%M:%S} plain timestamps show all at once for {one.seems_us / 1e6:.2f} s. That never "
            f"happened: one had left {one.apart_us / 1e3:.0f} ms before another came."
        )
    if not t.misjudged:
        lines.append("Plain timestamps gave no wrong result in this run.")
    lines.append(f"DEFINITELY gave {t.job.false} that never happened.")
    return lines


def _lie_lines(x: Lies) -> list[str]:
    """The part of the table about the gateway that lies."""
    lines = [
        "",
        f"A gateway with a certificate of its own tried {x.attempts} times to publish as another: the broker denied "
        f"{x.denied} attempts and let {x.let_through} through. It overheard {x.overheard} messages of others.",
    ]
    unanswered = x.attempts - x.denied - x.let_through
    return [*lines, f"{unanswered} attempts got no answer."] if unanswered else lines


def _customers(count: int) -> str:
    return f"{count} customer{'' if count == 1 else 's'}"


def flawless(judged: Judgement) -> bool:
    """True if every guarantee held: nothing lost, nothing repeated, every stamp right, the rules' exact results."""
    s, thefts, staff = judged.summary, judged.thefts, judged.staff
    return (
        (judged.lies is None or judged.lies.in_vain)
        and (thefts is None or thefts.exact)
        and (staff is None or staff.sound)
        and not (
            s.lost
            or s.repeated
            or s.pairs_repeated
            or s.violations
            or s.surplus
            or s.invented
            or s.unexpected
            or s.absent
        )
    )
