"""What a run of the demonstration comes to: its numbers, as a table for a person, and whether every promise held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whenabouts_sim.thefts import TheftSummary
from whenabouts_sim.truth import Rule, Summary


@dataclass(frozen=True)
class Judgement:
    """The summary of a run by its rule of pairs, and of its thefts where the world has goods that can be stolen."""

    rule: Rule
    summary: Summary
    thefts: TheftSummary | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and dictionaries; `thefts` is None without them."""
        return {**self.summary.as_dict(), "thefts": self.thefts and self.thefts.as_dict()}


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
        f"interval stamps, 80 % sure {s.true_pairs:>5} {s.job.found:>9} {s.job.false:>9} {s.job.missed:>9}",
        f"plain timestamps           {s.true_pairs:>5} {s.naive.found:>9} {s.naive.false:>9} {s.naive.missed:>9}",
        "",
    ]
    if s.missed_not_landed:
        lines.append(f"{s.missed_not_landed} true pairs could not be found, their readings did not land.")
    exact = "exactly the pairs" if not (s.unexpected or s.absent) else f"{s.unexpected} more and {s.absent} fewer pairs"
    lines.append(f"The Spark job found {exact} that the rule's definition, computed in exact fractions, gives.")
    lines.append(verdict(s))
    if judged.thefts is not None:
        lines += _theft_lines(judged.thefts)
    return "\n".join(lines)


_DAMAGE = {
    "late": "withheld, because this machine was too busy to play the reader in time",
    "overrun": "sent while nobody read the port",
}


def verdict(s: Summary) -> str:
    """One sentence: what the plain join got wrong, and what the intervals cost."""
    if s.naive.false > s.job.false:
        return (
            f"A join on plain timestamps would have reported {s.naive.false} pairs that never happened; "
            f"with intervals {s.job.false} of {s.job.found + s.job.false} reported are wrong, and {s.job.missed} were too "
            "unsure to be told."
        )
    return f"Plain timestamps gave {s.naive.false} false pairs here, interval stamps {s.job.false}."


def _theft_lines(t: TheftSummary) -> list[str]:
    """The part of the table about goods that left unpaid."""
    lines = ["", "goods that left unpaid        true     found     false    missed"]
    rows = (
        ("stamps, told when sure", t.job),
        ("in the order of arrival", t.by_arrival),
        ("in the order of timestamps", t.by_stamp),
    )
    lines += [f"{name:<26} {t.stolen:>7} {x.found:>9} {x.false:>9} {x.missed:>9}" for name, x in rows]
    exact = (
        "exactly the matches" if not (t.unexpected or t.absent) else f"{t.unexpected} more and {t.absent} fewer matches"
    )
    lines += [
        "",
        f"The Spark job told {exact} that the definition of SEQ(shelf, !till, exit) gives.",
        f"An engine that trusts the order of arrival would have accused {_customers(t.by_arrival.false)} who had paid: the "
        "till's gateway was cut off for a while, and its readings came late. "
        f"Ours waited until it was sure, and accused {t.job.false}.",
    ]
    return lines


def _customers(count: int) -> str:
    return f"{count} customer{'' if count == 1 else 's'}"


def flawless(judged: Judgement) -> bool:
    """Whether every promise held: nothing lost, nothing twice, every stamp right, the rules' exact results."""
    s, thefts = judged.summary, judged.thefts
    return (thefts is None or thefts.exact) and not (
        s.lost or s.repeated or s.pairs_repeated or s.violations or s.surplus or s.invented or s.unexpected or s.absent
    )
