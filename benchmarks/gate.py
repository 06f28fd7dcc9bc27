"""Measure what the gate costs honest rewrites and which distortions it stops.

    python -m benchmarks.gate [--texts FILE] [--data PAPERS-FOLDER] [--pairs FILE] [--show]

`gate.toml` has 20 invented papers, of each three honest rewrites (16 papers in English, 4 in German), and places of
these rewrites with a distorted wording; --texts reads another file of that form, as `gate_fresh.toml`. --data adds the
24 rewrites of `rewrites.jsonl`, and 51 places of these reversed, and said in other words (`retold.jsonl`). --pairs adds
a file of rewrites as honest texts (as in mutate_and_judge.py).

Columns: `code` alone stops the text; `asks`: code does not stop it and has a question about a number or name, which
without an answer keeps it out of the archive; `critic`: a critic scripted as perfect, which knows every distorted place
and finds nothing else; `both`: code, and this critic's answers to its questions too. So "both" shows what answers can
do, not what a real model answers. A distorted text that is held for what its honest twin is held for counts as missed.
Exits with 1 where code holds more than one in ten honest rewrites, or critic and code let a distortion pass.
"""

import argparse
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.mutate_and_judge import Good, from_file, from_folder, held_back
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.paper import Paper
from paper_assets.rewriting.faithfulness import Unsupported, unsupported
from paper_assets.rewriting.gate import answered_claims, compare_sentences, doubted_claims
from paper_assets.rewriting.policy import LEVELS
from paper_assets.rewriting.prompts import SUBSCORES, Critique
from paper_assets.rewriting.writing import new_item
from paper_assets.stores.rewrites import NewItem
from paper_assets.text.sentences import sentence_spans

MOST_HELD = 0.1  # of the honest rewrites, by code alone
_RETOLD = Path(__file__).with_name("retold.jsonl")
_MISSING = "not in the original: "
_TEXTS = Path(__file__).with_name("gate.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A rewrite. `distorted`: the words that say something else than the original; empty in an honest one, as `honest`
    is: the same rewrite without them.
    """

    item: NewItem
    text: str
    kind: str = "honest"
    distorted: str = ""
    honest: str = ""


def texts_of(file: Path = _TEXTS) -> list[Text]:
    """Return the honest rewrites of a file and, after them, the distorted ones."""
    honest: list[Text] = []
    distorted: list[Text] = []
    for number, row in enumerate(tomllib.loads(file.read_text(encoding="utf-8"))["paper"]):
        paper = Paper(
            paper_id=f"2700.{number:05d}", title=row["title"], abstract=" ".join(row["abstract"].split()), authors=()
        )
        for level in LEVELS:
            item, text = new_item(paper, level, language=row.get("language")), row[level].strip()
            honest.append(Text(item=item, text=text))
            for each in row["corruptions"]:
                if each["level"] == level:
                    changed = text.replace(each["words"], each["instead"])
                    distorted.append(
                        Text(item=item, text=changed, kind=each["kind"], distorted=each["instead"], honest=text)
                    )
    return honest + distorted


def retold(goods: Sequence[Good]) -> list[Text]:
    """Return each place of `retold.jsonl` in its rewrite, once in other words and once reversed."""
    by_name = {(item.paper_id, item.target_level): (item, text) for item, text in goods}
    found = []
    for row in map(json.loads, _RETOLD.read_text(encoding="utf-8").splitlines()):
        if good := by_name.get((row["paper_id"], row["level"])):
            item, text = good
            same, reversed_ = (text.replace(row["words"], row[which]) for which in ("same", "opposite"))
            found.append(Text(item=item, text=same, kind="honest, one place retold"))
            found.append(Text(item=item, text=reversed_, kind="reversed", distorted=row["opposite"], honest=same))
    return found


def perfect(text: Text) -> Critique:
    """Return what a critic answers that finds every distorted sentence, and nothing else, and likes the writing."""
    original = f"{text.item.title}\n\n{text.item.original_text}"
    start, end = sentence_spans(original)[-1]
    at = text.text.find(text.distorted)
    sentences = [
        {
            "number": number,
            "verdict": "changed" if text.distorted and first < at + len(text.distorted) and at < last else "supported",
            "original": original[start:end][:600],
        }
        for number, (first, last) in enumerate(sentence_spans(text.text), 1)
    ]
    claims = [
        {
            "claim": claim,
            "verdict": "invented" if text.distorted and claim in text.distorted else "supported",
            "original": original[start:end][:600],
        }
        for claim in _doubted(text).all
    ]
    return Critique.model_validate({"sentences": sentences, "claims": claims, **dict.fromkeys(SUBSCORES, 19)})


def held_by_critic(text: Text) -> bool:
    """Return whether a perfect critic's verdicts hold the text back."""
    return bool(compare_sentences(text.item, text.text, perfect(text).sentences).reasons)


def held_by_both(text: Text, reasons: Sequence[str]) -> bool:
    """Return whether the text is held back after the critic has answered what code did not find in the original."""
    critique, found = perfect(text), _doubted(text)
    claims = doubted_claims(found, critique, answered_claims(text.item, text.text, critique, found.all))
    other = any(not reason.startswith(_MISSING) for reason in reasons)
    return other or bool(claims) or held_by_critic(text)


def _asks(text: Text) -> bool:
    """Return whether code has a question about a number or name that it does not have about the honest twin."""
    honest = _doubted(replace(text, text=text.honest)).all if text.honest else ()
    return bool({*_doubted(text).all} - {*honest})


def _doubted(text: Text) -> Unsupported:
    return unsupported(f"{text.item.title}\n{text.item.original_text}", text.text, language=text.item.language)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, default=_TEXTS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--show", action="store_true", help="print what code holds wrongly and what it misses")
    asked = parser.parse_args()
    embedder = load_embedder()
    texts = texts_of(asked.texts)
    real = from_folder(asked.data) if asked.data else []
    for more in (real, from_file(asked.pairs) if asked.pairs else []):
        texts += [Text(item=item, text=text, kind="honest, real papers") for item, text in more]
    texts += retold(real)
    honest = [text for text in texts if not text.distorted]
    distorted = [text for text in texts if text.distorted]
    reasons = {text: why(text, texts, embedder) for text in honest}
    of_honest = {text.text: found for text, found in reasons.items()}
    for text in distorted:  # a reason that holds the honest text too does not count
        same = of_honest[text.honest]
        reasons[text] = tuple(reason for reason in why(text, texts, embedder) if reason not in same)

    def by_code(text: Text) -> bool:
        return bool(reasons[text])

    print(f"{'honest':28} {'texts':>6} {'code':>12} {'asks':>12} {'critic':>12} {'both':>12}")
    for name, group in _groups(honest, lambda each: f"{each.kind}, {each.item.language}, {each.item.target_level}"):
        print(_line(name, group, reasons))
    print(_line("all honest", honest, reasons), end="\n\n")
    print(f"{'distorted':28} {'texts':>6} {'code':>12} {'asks':>12} {'critic':>12} {'both':>12}")
    for name, group in _groups(distorted, lambda each: each.kind):
        print(_line(name, group, reasons))
    print(_line("all distorted", distorted, reasons), end="\n\n")
    kinds = Counter(kind for text in honest for kind in {reason.partition(":")[0] for reason in reasons[text]})
    for reason, count in kinds.most_common():
        print(f"{count:3} honest texts ({count / len(honest):.1%}) held: {reason}")
    for text in texts if asked.show else ():
        if by_code(text) != bool(text.distorted):
            print(f"   {text.item.paper_id} {text.item.target_level} {text.kind}: "
                  f"{'; '.join(reasons[text]) or text.distorted}")  # fmt: skip
    missed = [text for text in distorted if not held_by_both(text, reasons[text])]
    return int(sum(map(by_code, honest)) > MOST_HELD * len(honest) or bool(missed))


def why(text: Text, texts: Sequence[Text], embedder: Embedder | None) -> tuple[str, ...]:
    """Return why code holds a text back, claim by claim; the originals of the nearest other papers are its examples."""
    found = _doubted(text)
    originals = {each.item.paper_id: each.item.original_text for each in texts}
    reasons = held_back(text.item, text.text, embedder, originals)
    return (*reasons[: len(reasons) - bool(found.certain)], *(f"{_MISSING}{claim}" for claim in found.certain))


def _groups(texts: Sequence[Text], of: Callable[[Text], str]) -> list[tuple[str, list[Text]]]:
    names = dict.fromkeys(of(text) for text in texts)
    return [(name, [text for text in texts if of(text) == name]) for name in names]


def _line(name: str, texts: Sequence[Text], reasons: Mapping[Text, Sequence[str]]) -> str:
    found = (
        sum(bool(reasons[text]) for text in texts),
        sum(not reasons[text] and _asks(text) for text in texts),
        sum(map(held_by_critic, texts)),
        sum(held_by_both(text, reasons[text]) for text in texts),
    )
    shares = " ".join(f"{f'{count} ({count / len(texts):.0%})':>12}" for count in found)
    return f"{name:28} {len(texts):6} {shares}"


if __name__ == "__main__":
    sys.exit(main())
