"""Measure what the check of numbers and names finds in corrupted texts, and reports of faithful ones.

    python -m benchmarks.faithfulness --data PAPERS-FOLDER [--papers 200] [--seed 1] [--show]

PAPERS-FOLDER holds `papers.jsonl.gz` with `title` and `abstract` a line. Of each abstract one text is made for every
kind of corruption that it has a place for (benchmarks/corruptions.py); found is a text in which something
is reported. False alarms are texts that say the same as the abstract: the abstract itself, half of its sentences in
another order, numbers spelt another way, sentences that begin with other words. Exits with 1 where a kind is found in
less than 95 of 100, or more than one faithful text in a hundred is reported.
"""

import argparse
import gzip
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.corruptions import NUMBERS_AND_NAMES, Strangers, names_in
from paper_assets.rewriting.faithfulness import unsupported

LEAST_FOUND, MOST_ALARMS = 0.95, 0.01
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_BEGINNINGS = (
    "However,", "Researchers say that", "Imagine this:", "In everyday words,", "Surprisingly,", "Instead,", "Together,",
    "Until now,", "Scientists ask whether", "Put simply,", "Yet", "Moreover,", "Crucially,", "Surprisingly,",
)  # fmt: skip


def itself(text: str, chance: random.Random) -> str:
    return text


def reordered(text: str, chance: random.Random) -> str:
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)
    return " ".join(chance.sample(sentences, max(1, len(sentences) // 2)))


def respelt(text: str, chance: random.Random) -> str:
    """Digits as words and words as digits, percent in letters, thousands apart."""
    text = re.sub(r"(?<![\w.,^{$-])(\d{4,7})(?![\w.,^}]\d?)", lambda found: f"{int(found[0]):,}", text)
    text = re.sub(r"(?:\\%|\s?%)", " percent", text)
    text = re.sub(
        r"(?<=[a-z] )([2-9]|1[0-2])(?= [a-z]{3,})(?! (?:to|and|or)\b)", lambda found: _WORDS[int(found[0])], text
    )
    return re.sub(r"\b(three|four|five|six|seven|eight|nine|ten)\b(?= [a-z])", lambda f: f"{_WORDS.index(f[0])}", text)


def begun_otherwise(text: str, chance: random.Random) -> str:
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)
    return " ".join(
        f"{chance.choice(_BEGINNINGS)} {each[0].lower() if each[1:2].islower() else each[0]}{each[1:]}"
        for each in sentences
        if each
    )


FAITHFUL: dict[str, Callable[[str, random.Random], str]] = {
    "the abstract itself": itself,
    "half, in another order": reordered,
    "numbers respelt": respelt,
    "other beginnings": begun_otherwise,
}


def papers_of(folder: Path) -> list[dict[str, str]]:
    with gzip.open(folder / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def names_of(papers: list[dict[str, str]]) -> list[str]:
    """What the abstracts name: words with a capital that none of them has without one."""
    named = {name for paper in papers[-2000:] for name in names_in(paper["abstract"])}
    lower = {word for paper in papers for word in re.findall(r"\b[a-z]+\b", paper["abstract"])}
    return sorted(name for name in named if name.lower() not in lower and name.lower().rstrip("s") not in lower)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--papers", type=int, default=200, help="abstracts for each line of the table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was missed and what was reported wrongly")
    asked = parser.parse_args()
    papers, chance = papers_of(asked.data), random.Random(asked.seed)
    chance.shuffle(papers)
    strangers = Strangers(
        names=names_of(papers),
        texts=[paper["abstract"] for paper in papers[-200:]],
    )
    failed = False
    print(f"{'corruption':26} {'texts':>6} {'found':>7}")
    for name, corrupt in NUMBERS_AND_NAMES.items():
        tried = found = 0
        for paper in papers:
            original = f"{paper['title']}\n{paper['abstract']}"
            changed = corrupt(paper["abstract"], strangers, chance)
            if changed is None:
                continue
            tried += 1
            caught = bool(unsupported(original, changed).all)
            found += caught
            if asked.show and not caught:
                print("   missed:", _difference(paper["abstract"], changed))
            if tried == asked.papers:
                break
        failed |= found < LEAST_FOUND * tried
        print(f"{name:26} {tried:6} {found / max(tried, 1):7.1%}")
    print(f"\n{'faithful':26} {'texts':>6} {'alarms':>7}")
    for name, make in FAITHFUL.items():
        alarms = 0
        for paper in papers[: asked.papers]:
            text = make(paper["abstract"], chance)
            reported = unsupported(f"{paper['title']}\n{paper['abstract']}", text).all
            alarms += bool(reported)
            if asked.show and reported:
                print("   reported:", reported)
        failed |= alarms > MOST_ALARMS * asked.papers
        print(f"{name:26} {min(asked.papers, len(papers)):6} {alarms / asked.papers:7.1%}")
    return int(failed)


def _difference(text: str, changed: str) -> str:
    start = next((at for at, (a, b) in enumerate(zip(text, changed, strict=False)) if a != b), 0)
    return f"{text[max(0, start - 50) : start + 40]!r} -> {changed[max(0, start - 50) : start + 50]!r}"


if __name__ == "__main__":
    sys.exit(main())
