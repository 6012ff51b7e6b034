"""The three rules of the demonstration, and their parameters.

`python -m whenabouts_sim.demo.rules` compiles the engines of these rules, so that a set-up need not compile everything.
"""

from fractions import Fraction

from whenabouts_cloud.rules import parse_rules
from whenabouts_sim.judge.thefts import TheftRule
from whenabouts_sim.world.posts import Post, rule_text
from whenabouts_sim.world.shoppers import CHECKOUT, EXIT, SHELF
from whenabouts_sim.world.world import SimReader

D_US = 2_000_000
CONFIDENCE = Fraction(8, 10)
RULE = """# Goods seen at the warehouse's dock and at the shop's door within two seconds, at least 80 % sure.
STREAM dock FROM "{a.stream}" AT SITE "{a.site}" GATEWAY "{a.gateway}" DELAY 30 s
STREAM door FROM "{b.stream}" AT SITE "{b.site}" GATEWAY "{b.gateway}" DELAY 30 s

RULE handover
  CORRELATE dock AS a, door AS b
  WHERE |@a - @b| <= 2 s OVER 80 % AND a.key = b.key
"""
# LENGTH is far above the length of stamps here; each match waits that much longer until it is certain.
THEFT = TheftRule(SHELF, CHECKOUT, EXIT, 20_000_000)
THEFT_RULE = """
# Goods from the warehouse's shelf that leave by the shop's exit and did not pass the till between.
STREAM shelf FROM "{t.shelf.stream}" AT SITE "{t.shelf.site}" DELAY 2 min LENGTH 0 s .. 5 s
STREAM till  FROM "{t.till.stream}" AT SITE "{t.till.site}" DELAY 2 min LENGTH 0 s .. 5 s
STREAM exit  FROM "{t.exit.stream}" AT SITE "{t.exit.site}" DELAY 2 min LENGTH 0 s .. 5 s

RULE unpaid
  SEQ(shelf a, !till c, exit e) WITHIN 20 s PER key WHEN SURE
"""
GROUP = "staff"
POSTS = (
    Post("guard", SimReader("guard-1", "warehouse", "gate-1", "guard/badges", "rdm6300"), "0A00C0FFEE"),
    Post("cashier", SimReader("cashier-1", "shop", "door-1", "cashier/badges", "rdm6300"), "0A00CA5417"),
)
STAFF_RULE = "\n# The guard is at the warehouse and the cashier at the shop.\n" + rule_text("staffed", GROUP, POSTS)


def more_rules() -> str:
    """The rules other than RULE, about goods and staff that a capture does not have."""
    return THEFT_RULE.format(t=THEFT) + STAFF_RULE


if __name__ == "__main__":
    from whenabouts_cloud.warm import warm_rules  # loads numba, which the demonstration does not need

    warm_rules(parse_rules(more_rules()))
