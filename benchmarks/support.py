"""Measure the checker of generated sentences (`text/support.py`): both error rates, by kind of sentence.

    python -m benchmarks.support --pairs FILE [--half 0|1] [--show]
    python -m benchmarks.support --data PAPERS-FOLDER [--papers 300] [--seed 1] [--show]

FILE: a JSON object a line with `kind` (supported, changed, invented), `text`, `cited`, `source`, and `group`, whose
parity is the half. --data makes pairs from the abstracts of PAPERS-FOLDER (`papers.jsonl.gz`): a sentence cited in full
or without its first clause (supported), corrupted in one place (changed, `corruptions.py`), or of another paper
(invented). Shown for each kind: what code supports, asks about and drops; and what is shown as a fact after a perfect
model answered, after one that says yes to everything, and without a model.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.corruptions import BY_MEANING, NUMBERS_AND_NAMES, Strangers, names_in
from paper_assets.models.embedder import load_embedder
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.support import CONTROLS, Statement, check, settled, similarities_of

Pair = tuple[str, Statement]
_LEAST, _MOST = 80, 300  # characters of a sentence


def from_file(file: Path, half: int | None) -> list[Pair]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if half is None or row["group"] % 2 == half]
    return [(row["kind"], Statement(text=row["text"], cited=row["cited"], source=row["source"])) for row in rows]


def from_papers(folder: Path, *, count: int, chance: random.Random) -> list[Pair]:
    with gzip.open(folder / "papers.jsonl.gz", "rt", encoding="utf-8") as file:
        papers = chance.sample([json.loads(line) for line in file], count)
    sentences = [_sentences(paper["abstract"]) for paper in papers]
    texts = [paper["abstract"] for paper in papers]
    strangers = Strangers(names=[name for text in texts for name in names_in(text)], texts=texts)
    pairs = []
    for at, (paper, own) in enumerate(zip(papers, sentences, strict=True)):
        if not own or not sentences[at - 1]:
            continue
        cited, source = chance.choice(own), f"{paper['title']}. {paper['abstract']}"
        made = [("supported", cited), ("invented", chance.choice(sentences[at - 1]))]
        made += [("supported", cited.partition(", ")[2].capitalize())] if len(cited.partition(", ")[2]) > _LEAST else []
        for corrupt in (*NUMBERS_AND_NAMES.values(), *BY_MEANING.values()):
            if (text := corrupt(cited, strangers, chance)) and text != cited:
                made.append(("changed", text))
        pairs += [(kind, Statement(text=text, cited=cited, source=source)) for kind, text in made]
    return pairs


def _sentences(text: str) -> list[str]:
    found = (" ".join(text[start:end].split()) for start, end in sentence_spans(text))
    return [each for each in found if _LEAST <= len(each) <= _MOST]


def perfect(pairs: Sequence[Pair], *, agrees: bool = False) -> Any:
    """A model that knows the kinds; `agrees`: one that says yes to everything."""
    kinds = {statement.text: kind for kind, statement in pairs}
    controls = {text: answer for text, _, answer in CONTROLS}

    def ask(*, system: str, user: str, schema: Any) -> Any:
        shown = [json.loads(line) for line in user.splitlines() if line.startswith('{"number"')]
        answers = [
            "yes" if agrees or kinds.get(each["sentence"]) == "supported" else controls.get(each["sentence"], "no")
            for each in shown
        ]
        entries = zip(shown, answers, strict=True)
        made = [{"number": each["number"], "answer": answer, "words": each["passage"]} for each, answer in entries]
        return SimpleNamespace(value=SimpleNamespace(pairs=made))

    return ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--papers", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    pairs = from_file(given.pairs, given.half) if given.pairs else []
    pairs += from_papers(given.data, count=given.papers, chance=random.Random(given.seed)) if given.data else []
    statements = [statement for _, statement in pairs]
    checked = check(statements, similarities_of(load_embedder()))
    asked = {"perfect": perfect(pairs), "yes to all": perfect(pairs, agrees=True), "no model": None}
    outcomes = {name: settled(statements, checked, ask=ask) for name, ask in asked.items()}
    print(
        f"{'kind':10} {'n':>5} {'by code: supported':>18} {'asked':>6} {'dropped':>8}   shown as fact: "
        + ", ".join(asked)
    )
    for kind in ("supported", "changed", "invented"):
        rows = [at for at, (of, _) in enumerate(pairs) if of == kind]
        verdicts = Counter(checked[at] for at in rows)
        facts = [sum(outcomes[name][at] == "supported" for at in rows) for name in asked]
        by_code = f"{verdicts['supported']:>18} {verdicts['doubtful']:>6} {verdicts['unsupported']:>8}"
        print(f"{kind:10} {len(rows):>5} {by_code}   {', '.join(map(str, facts))}")
    if given.show:
        for (kind, statement), each in zip(pairs, checked, strict=True):
            if (kind, each) in (
                ("supported", "unsupported"),
                ("changed", "supported"),
                ("invented", "supported"),
            ):
                print(f"\n{kind}, {each}\n  {statement.text}\n  {statement.cited}")


if __name__ == "__main__":
    main()
