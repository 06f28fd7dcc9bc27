"""Numbers as readers see them."""

import pytest

from paper_assets.text.numbers import percent, percent_against


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "1 %"), (0.004, "1 %"), (0.826, "83 %"), (0.998, "99 %"), (1.0, "99 %")]
)
def test_a_probability_is_shown_in_whole_percents_and_never_as_certain(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("share", "needed", "shown"),
    [
        (0.31, 0.4, ("31 %", "40 %")),
        (0.398, 0.4, ("39.8 %", "40.0 %")),
        (0.39996, 0.4, ("40.00 %", "40.00 %")),
        (0.4, 0.4, ("40 %", "40 %")),
        (0.9962, 0.9971, ("99.6 %", "99.7 %")),
    ],
)
def test_two_probabilities_have_the_decimals_that_show_which_is_higher(
    share: float, needed: float, shown: tuple[str, str]
) -> None:
    assert percent_against(share, needed) == shown
