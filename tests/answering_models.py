"""Script language models that answer questions: one that obeys, and four that cheat, for any passages.

Also a question and two invented papers that disagree about it. A model is a script for `loopback_llm`: it finds every
passage useful, and writes what its writer makes of the passages.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from paper_assets.text.sentences import sentence_spans
from paper_assets.text.words import words_in
from tests.invented_papers import paper
from tests.loopback_llm import Request, Step, says

QUESTION = "Do cover crops raise the yield of maize?"
RAISED = paper(
    "2603.00011",
    date(2026, 3, 2),
    title="Cover crops in eleven maize trials",
    abstract="Soil is tired. Across eleven trials, cover crops raised the yield of maize by 12 percent. We share data.",
)
LOWERED = paper(
    "2603.00012",
    date(2026, 3, 2),
    title="Dry years and cover crops",
    abstract="Water is short. In dry years cover crops lowered the yield of maize, as they drink first.",
)
RAISED_SENTENCE = "Across eleven trials, cover crops raised the yield of maize by 12 percent."
LOWERED_SENTENCE = "In dry years cover crops lowered the yield of maize, as they drink first."

Passage = Mapping[str, Any]
Written = list[dict[str, Any]]
Writer = Callable[[Sequence[Passage]], Written]


def passages_of(request: Request) -> list[Passage]:
    """Return the passages that a request shows."""
    return [json.loads(line) for line in request.turns[0].splitlines() if line.startswith('{"number"')]


def neutral(passage: Passage) -> dict[str, Any]:
    return {"number": passage["number"], "stance": "neutral", "sentence": ""}


def yes_to_all(pair: Passage) -> dict[str, Any]:
    """Find every sentence in every passage."""
    return {"number": pair["number"], "answer": "yes", "words": pair["passage"]}


def honest(pair: Passage) -> dict[str, Any]:
    """Say no where a sentence shares few words with its passage or turns a direction round, else yes."""
    words, known = set(words_in(pair["sentence"])), set(words_in(pair["passage"]))
    turned = ("more" in words) != ("more" in known) and "less" in words | known
    if len(words & known) < len(words) / 2.5 or turned:
        return {"number": pair["number"], "answer": "no", "words": ""}
    return yes_to_all(pair)


def answering_model(
    write: Writer,
    *,
    stance: Callable[[Passage], Mapping[str, Any]] = neutral,
    agree: Callable[[Passage], Mapping[str, Any]] = honest,
) -> Callable[[Request], Step]:
    """Return a model that writes what `write` gives, labels stances as `stance` does, and checks pairs as `agree`."""

    def respond(request: Request) -> Step:
        shown, fields = passages_of(request), (request.schema or {}).get("properties", {})
        if "passages" in fields:
            return says({"passages": [{"number": each["number"], "relevance": 8} for each in shown]})
        if "labels" in fields:
            return says({"labels": [dict(stance(each)) for each in shown]})
        if "pairs" in fields:
            return says({"pairs": [agree(each) for each in shown]})
        return says({"answered": True, "sentences": write(shown)})

    return respond


def sentence(text: str, *citations: tuple[int, str]) -> dict[str, Any]:
    """Return a sentence with its citations: number of a passage and quote."""
    return {"text": text, "citations": [{"number": passage, "quote": quote} for passage, quote in citations]}


def longest_sentence(passage: Passage) -> str:
    text = passage["text"]
    return max((text[start:end] for start, end in sentence_spans(text)), key=len)


def obeys(shown: Sequence[Passage]) -> Written:
    """Quote the longest sentence of each passage."""
    return [
        sentence(f"It reports: {longest_sentence(each)}", (each["number"], longest_sentence(each))) for each in shown
    ]


def invents_quotes(shown: Sequence[Passage]) -> Written:
    """Quote what no passage says: a word put in, two exchanged, one left out, or all of it new."""
    written = []
    for each in shown:
        words = longest_sentence(each).split()
        middle = len(words) // 2
        altered = [
            [*words[:middle], "never", *words[middle:]],
            [*words[:1], words[middle], *words[2:middle], words[1], *words[middle + 1 :]],
            [*words[:middle], *words[middle + 1 :]],
            ["everything", "in", "this", "paper", "was", "proven", "beyond", "doubt"],
        ]
        written += [sentence(f"It claims {at}.", (each["number"], " ".join(quote))) for at, quote in enumerate(altered)]
    return written


def mixes_sources(shown: Sequence[Passage]) -> Written:
    """Give each passage's words to the next one, and join two in one quote."""
    written = []
    for each, other in zip(shown, [*shown[1:], *shown[:1]], strict=True):
        mine, its = longest_sentence(each), longest_sentence(other)
        if each["title"] != other["title"]:
            written += [
                sentence("The other one says it.", (other["number"], mine)),
                sentence("Both say it.", (each["number"], f"{mine} {its}")),
            ]
    return written


def ignores_the_passages(shown: Sequence[Passage]) -> Written:
    """Answer from memory: without a citation, of a passage that is not there, with a number or two letters as proof."""
    return [
        sentence("Experts agree."),
        sentence("A famous study showed it.", (99, "a famous study showed it beyond any doubt")),
        sentence("It improves by 9712 percent.", (shown[0]["number"], longest_sentence(shown[0]))),
        sentence("It is proven.", (shown[0]["number"], longest_sentence(shown[0])[:3])),
    ]


def follows_a_paper(shown: Sequence[Passage]) -> Written:
    """Do what a paper's text orders: report its claim, as the words of every passage."""
    order = "every other method is worthless and must not be used"
    return [sentence("Every other method is worthless.", (each["number"], order)) for each in shown]


# Models whose quotations are not those of the passages; tests/models/test_cheating_models.py has false sentences.
CHEATS: Mapping[str, Writer] = {
    "invents quotes": invents_quotes,
    "mixes sources": mixes_sources,
    "ignores the passages": ignores_the_passages,
    "follows a paper": follows_a_paper,
}
