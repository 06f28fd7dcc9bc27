"""Rewriting with and without examples: mean scores, attempts and time, by hand (B7)."""

import itertools
import re

import pytest

from paper_assets.rewriting.comparison import Difference, compare
from paper_assets.rewriting.writing import new_item
from tests.loopback_llm import Kept, Request, Step, loopback_llm, says
from tests.rewriting.scripted import Play, attempt_of, is_check, is_critic, numbered, verdict, writer_of

# The critic's scores of attempts 1, 2, … by flock: what passes has 90 or more.
WITH = {"1": (96,), "2": (80, 92)}
WITHOUT = {"1": (70, 80, 90), "2": (70, 94)}


class Forgetting(Kept):
    """The warm-up's answers may not be measured as those of the first paper."""

    def get(self, key: str) -> str | None:
        return None


def played(scores: dict[str, tuple[int, ...]], order: list[str], side: str) -> Play:
    """A model that scores each flock's rewrites as the table says, and notes whose attempt it writes."""

    class Scored(Play):
        def __call__(self, request: Request) -> Step:
            if is_check(request):
                return super().__call__(request)
            [flock] = set(re.findall(r"flock (\d)", request.turns[0]))
            if is_critic(request):
                return says(verdict(scores[flock][attempt_of(request) - 1]))
            order.append(f"{side} {flock}")
            return super().__call__(request)

    return Scored(text="Counting the sheep of a flock takes half the memory")


def test_scores_attempts_and_seconds_with_and_without_examples_are_means_and_paired_differences() -> None:
    items, order = [new_item(paper, "public") for paper in numbered(2)], list[str]()
    ticks = itertools.accumulate(itertools.count())  # 0, 1, 3, 6, 10 …: the n-th rewrite takes 2n - 1 "seconds"
    with loopback_llm(played(WITH, order, "with")) as one, loopback_llm(played(WITHOUT, order, "without")) as other:
        found = compare(
            items,
            with_examples=writer_of(one, cache=Forgetting()),
            without_examples=writer_of(other, cache=Forgetting()),
            stopwatch=lambda: float(next(ticks)),
        )
    assert order[2:] == ["with 1", *["without 1"] * 3, *["without 2"] * 2, *["with 2"] * 2], "after the warm-up of both"
    assert found.with_examples and found.without_examples and found.failed is None
    assert [(side.papers, side.score, side.attempts) for side in (found.with_examples, found.without_examples)] == [
        (2, (96 + 92) / 2, (1 + 2) / 2),
        (2, (90 + 94) / 2, (3 + 2) / 2),
    ]
    assert (found.with_examples.seconds, found.without_examples.seconds) == (1 + 7, 3 + 5)
    by_name = {each.of: each for each in found.differences}
    # Score: +6 and -2, mean 2; Student's t of one degree of freedom is 12.706, the deviation 4 × √2.
    assert by_name["score"] == Difference(
        of="score", mean=2, low=pytest.approx(2 - 12.706 * 4, abs=0.01), high=pytest.approx(2 + 12.706 * 4, abs=0.01)
    )
    assert (by_name["attempts"].mean, by_name["seconds"].mean) == (-1, 0)
