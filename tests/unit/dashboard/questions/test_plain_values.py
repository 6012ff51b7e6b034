"""Values that a browser reads as they are."""

import json

import pytest

from whenabouts_cloud.dashboard.questions.plain_values import plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"boot": 7, "b_seq": 2**63 - 1}, {"boot": "7", "b_seq": str(2**63 - 1)}),
        ({"t_min": 2**53, "view": 2**53 + 1}, {"t_min": 2**53, "view": str(2**53 + 1)}),
        ([1.5, float("nan"), float("inf"), None, True], [1.5, None, None, None, True]),
        ({"events": [{"seq": 1}], 5: (1, b"\x01\xff")}, {"events": [{"seq": "1"}], "5": [1, "01ff"]}),
        ("<b>", "<b>"),
    ],
)
def test_values_lose_nothing_in_a_browser(value, expected):
    """Numbers of readings are texts whatever their size, so that a page need not distinguish."""
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)
