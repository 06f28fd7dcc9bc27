"""Measure which reversed statements the checks find, and which faithful texts they stop for it.

    python -m benchmarks.directions --data PAPERS-FOLDER [--half 0] [--abstracts 600] [--show]

`retold.jsonl` has places of the rewrites in `rewrites.jsonl`, each written once reversed and once the same in
other words. They were written by hand before the rules that they measure, in different words; the kind "turned
round" of mutate_and_judge.py swaps words of one list. --half as there: 1 was used only when the rules were finished.

Faithful texts are the rewrites themselves and, of PAPERS-FOLDER (`papers.jsonl.gz`), abstracts held against themselves,
titles held against their abstract, and the second half of an abstract held against title and first half, where most
of those that are reported do say the opposite of something. The ids of papers separate the two halves.
Exits with 1 where a good rewrite is stopped, or a place that says the same in other words.
"""

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.corruptions import Strangers, turned_round
from benchmarks.mutate_and_judge import Good, from_folder, half_of
from paper_assets.rewriting.direction import Turned, turned
from paper_assets.text.sentences import sentence_spans

_RETOLD = Path(__file__).with_name("retold.jsonl")
_NOBODY = Strangers(names=(), texts=())


def retold(goods: list[Good], which: str) -> Iterator[tuple[Good, str]]:
    """Return each place in its rewrite with the words `which`, and its original words."""
    texts = {(item.paper_id, item.target_level): (item, text) for item, text in goods}
    for row in map(json.loads, _RETOLD.read_text(encoding="utf-8").splitlines()):
        if (row["paper_id"], row["level"]) in texts:
            item, text = texts[row["paper_id"], row["level"]]
            yield (item, text.replace(row["words"], row[which])), row[which]


def found_in(good: Good) -> tuple[Turned, ...]:
    """Return what the checks report about the directions of a text."""
    item, text = good
    return turned(item.title, item.original_text, text)


def faithful(papers: list[dict[str, str]]) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Of each kind titles, originals and texts that say the same."""
    yield "the abstract itself", [(paper["title"], paper["abstract"], paper["abstract"]) for paper in papers]
    yield "the title", [("", paper["abstract"], paper["title"]) for paper in papers]
    halves = []
    for paper in papers:
        spans = sentence_spans(paper["abstract"])
        middle = spans[len(spans) // 2][0] if len(spans) > 1 else 0
        if middle:
            halves.append((paper["title"], paper["abstract"][:middle], paper["abstract"][middle:]))
    yield "second half, against the first", halves


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--half", type=int, choices=(0, 1), default=0)
    parser.add_argument("--abstracts", type=int, default=600)
    parser.add_argument("--show", action="store_true", help="print what was missed, and what was reported wrongly")
    asked = parser.parse_args()
    goods = [good for good in from_folder(asked.data) if half_of(good[0].paper_id) == asked.half]
    wrong = [(item.paper_id, found) for item, text in goods if (found := found_in((item, text)))]
    print(f"good rewrites stopped: {len(wrong)} of {len(goods)}")
    for name, found in wrong:
        print("  ", name, found)
    misread = 0
    for which in ("opposite", "same"):
        tried: dict[str, list[bool]] = {}
        for good, words in retold(goods, which):
            found = found_in(good)
            tried.setdefault(good[0].target_level, []).append(bool(found))
            if asked.show and bool(found) != (which == "opposite"):
                print(f"   {good[0].paper_id} {good[0].target_level}: {words!r} {found or ''}")
        reported_in_all = sum(sum(one) for one in tried.values())
        misread += reported_in_all if which == "same" else 0
        told = ", ".join(f"{level} {sum(one)} of {len(one)}" for level, one in tried.items())
        print(f"retold, {which}: reported {reported_in_all} of {sum(map(len, tried.values()))} ({told})")
    papers = [paper for paper in _papers(asked.data) if half_of(paper["id"]) == asked.half]
    chance = random.Random(1)
    chance.shuffle(papers)
    changed = [
        (paper, text)
        for paper in papers[: asked.abstracts]
        if (text := turned_round(paper["abstract"], _NOBODY, chance)) is not None
    ]
    seen = sum(bool(turned(paper["title"], paper["abstract"], text)) for paper, text in changed)
    print(f"abstracts with one word turned round: reported {seen} of {len(changed)}")
    for kind, texts in faithful(papers[: asked.abstracts]):
        reported = [(text, found) for title, original, text in texts if (found := turned(title, original, text))]
        print(f"{kind}: reported {len(reported)} of {len(texts)}")
        for text, found in reported if asked.show else ():
            print("  ", found, text[:300])
    return int(bool(wrong or misread))


def _papers(folder: Path) -> list[dict[str, str]]:
    with gzip.open(folder / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    sys.exit(main())
