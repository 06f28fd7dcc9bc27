"""Numbers as readers see them."""

import pytest

from paper_assets.text.numbers import percent


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "1 %"), (0.004, "1 %"), (0.826, "83 %"), (0.998, "99 %"), (1.0, "99 %")]
)
def test_a_probability_is_shown_in_whole_percents_and_never_as_certain(share: float, shown: str) -> None:
    assert percent(share) == shown
