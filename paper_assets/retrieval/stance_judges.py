"""Judge stances: by an NLI cross-encoder if one is configured, else by the language model (SPEC R7).

The cross-encoder reads sentence by sentence (premise: the sentence, hypothesis: the claim), as such models were
trained, so the sentence behind a label is known and nothing leaves the machine. The language model gets passages as
escaped JSON in a fence, under our numbers; only requested numbers count, each with a sentence that occurs in its
passage. Its answers are stored by content.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from paper_assets.errors import LLMBudgetReached, LLMConfigError, LLMError, LLMUnreachable, ModelUnavailable
from paper_assets.models.cross_encoder import NLIEncoder, load_nli
from paper_assets.models.llm import Completion, LanguageModel
from paper_assets.models.llm_config import Budget, llm_config
from paper_assets.retrieval.stance import STANCES, Label, Labels, Passage, StanceJudge, no_judge
from paper_assets.settings import Settings
from paper_assets.stores.llm_answers import keep_answers, known_answers
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import introduced
from paper_assets.text.prompts import AskModel, by_number, numbered_entries, prompt
from paper_assets.text.sentences import quoted_sentence, sentence_spans
from paper_assets.text.support import Probabilities

_SURE = 0.5  # least probability of a stance; below it, neutral is at least as likely
_MOST_SENTENCES = 40  # sentences read of a passage; an abstract has a dozen


def nli_judge(model: NLIEncoder) -> StanceJudge:
    """Label a passage by its sentence with the most certain stance."""

    def label(claim: str, passages: Sequence[Passage]) -> Labels:
        sentences = [
            [passage.text[start:end] for start, end in sentence_spans(passage.text)[:_MOST_SENTENCES]]
            for passage in passages
        ]
        probabilities = model.probabilities([(each, claim) for own in sentences for each in own])
        labels, at = [], 0
        for own in sentences:
            labels.append(_surest(own, probabilities[at : at + len(own)]))
            at += len(own)
        return Labels(labels=tuple(labels))

    return StanceJudge(name=model.name, kind="NLI cross-encoder", label=label)


def _surest(sentences: Sequence[str], probabilities: np.ndarray) -> Label:
    """Return the label of the sentence with the highest probability. `probabilities` (n, 2): entails, contradicts."""
    if not len(sentences):
        return Label("neutral")
    row, column = divmod(int(np.argmax(probabilities)), 2)
    if not probabilities[row, column] >= _SURE:
        return Label("neutral")
    return Label("contradicts" if column else "supports", " ".join(sentences[row].split()))


BATCH = 10  # passages in one question: ten abstracts are about 5,000 tokens
AT_ONCE = 3  # questions in parallel
_MOST_CHARACTERS = 4_000  # characters shown of a passage; an abstract has at most 1,920
_LONGEST_CLAIM = 2_000
_NOT_QUOTED = "the sentence given for them is not in their text"
_LEFT_OUT = "the model left them out of its answer"
_PRIVATE = "private, and shown to no language model"


def open_llm_judge(
    environ: Mapping[str, str],
    *,
    warehouse: Warehouse | None = None,
    deadline: Callable[[], float | None] = lambda: None,
    budget: Budget | None = None,
) -> StanceJudge:
    """Return the judge for the environment's language model; without one its labels carry the reason.

    `warehouse`: where its answers are stored, if anywhere; `deadline` returns the seconds left. Without a `budget` it
    has a separate one.
    """
    try:
        config = llm_config(environ)
    except LLMConfigError as error:
        return no_judge(str(error))
    spent = budget or Budget(calls=config.budget_calls, tokens=config.budget_tokens)
    model = LanguageModel(config=config, purpose="stances for and against", budget=spent)

    def ask(**question: Any) -> Completion[Any]:
        return model.ask(**question, deadline=deadline())

    return StanceJudge(
        name=config.model,
        kind="language model",
        label=partial(_label, ask=ask, model=config.model, warehouse=warehouse),
    )


def _label(
    claim: str, passages: Sequence[Passage], *, ask: AskModel, model: str, warehouse: Warehouse | None
) -> Labels:
    """Label by `ask`. Several questions run at once; after a failure no further ones are started."""
    claim = " ".join(claim.split())[:_LONGEST_CLAIM]
    texts = [passage.text[:_MOST_CHARACTERS] for passage in passages]
    keys = {at: _key(claim, texts[at], model) for at, passage in enumerate(passages) if not passage.private}
    answers = known_answers(warehouse, keys.values()) if warehouse else {}
    missing: dict[str, str] = {}  # key -> text: equal texts are asked once
    for at, key in keys.items():
        if key not in answers:
            missing.setdefault(key, texts[at])
    faults: list[LLMError] = []
    asked = list(missing)
    batches = [asked[start : start + BATCH] for start in range(0, len(asked), BATCH)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for start in range(0, len(batches), AT_ONCE):
            jobs = [
                (batch, pool.submit(_model_answers, ask, claim, [missing[key] for key in batch]))
                for batch in batches[start : start + AT_ONCE]
            ]
            for batch, job in jobs:
                try:
                    found = dict(zip(batch, job.result(), strict=True))
                except LLMError as fault:
                    faults.append(fault)
                    continue
                if warehouse:
                    given = {key: answer for key, answer in found.items() if answer != "null"}
                    keep_answers(warehouse, given, model=model)
                answers |= found
            if faults:
                break  # further questions would probably fail too
    labels = tuple(
        _read(answers[keys[at]], text) if at in keys and keys[at] in answers else None for at, text in enumerate(texts)
    )
    reasons = [str(fault) for fault in faults]
    reasons += [_PRIVATE] if len(keys) < len(passages) else []
    silent = {answers[key] for at, key in keys.items() if labels[at] is None and key in answers}
    reasons += [_LEFT_OUT] if "null" in silent else []
    reasons += [_NOT_QUOTED] if silent - {"null"} else []
    lasting = (LLMConfigError, LLMBudgetReached, LLMUnreachable)
    return Labels(
        labels=labels,
        reasons=tuple(dict.fromkeys(reasons)),
        failed=bool(faults),
        over=any(isinstance(fault, lasting) for fault in faults),
    )


def _model_answers(ask: AskModel, claim: str, texts: Sequence[str]) -> list[str]:
    """Return the answer for each text as JSON, null if the model gave none or two. Raises LLMError."""
    lines = "\n".join(
        json.dumps({"number": number, "text": " ".join(text.split())}, ensure_ascii=False)
        for number, text in enumerate(texts, 1)
    )
    user = (
        f"Claim: {json.dumps(claim, ensure_ascii=False)}\n\n"
        f"{introduced('Passages, one JSON object on each line', 'passages', lines)}\n\n"
        f"Give one label for each of these {len(texts)} passages."
    )
    schema = numbered_entries("labels", len(texts), stance=(*STANCES, "neutral"), sentence="string")
    given = by_number(ask(system=prompt("stance"), user=user, schema=schema).value.labels, len(texts))
    if not given:
        raise LLMError("the model judged none of the passages it was asked about")
    answers = []
    for number in range(1, len(texts) + 1):
        entry = given.get(number)
        sentence = None if entry is None or entry.get("stance") == "neutral" else entry.get("sentence")
        record = {"stance": entry.get("stance"), "sentence": sentence} if entry else None
        answers.append(json.dumps(record, ensure_ascii=False))
    return answers


def _read(answer: str, text: str) -> Label | None:
    """Return the label in a model's answer; None without a known stance and a sentence that is in the text."""
    record = json.loads(answer)
    if not isinstance(record, Mapping):
        return None
    stance, sentence = record.get("stance"), record.get("sentence")
    if stance == "neutral":
        return Label("neutral")
    if stance not in STANCES or not isinstance(sentence, str):
        return None
    found = quoted_sentence(sentence, text)
    return Label(stance, found) if found else None


def _key(claim: str, text: str, model: str) -> str:
    return sha256(json.dumps(["stance", prompt("stance"), model, claim, text]).encode()).hexdigest()


def open_judge(
    settings: Settings,
    environ: Mapping[str, str],
    warehouse: Warehouse,
    *,
    deadline: Callable[[], float | None] = lambda: None,
    budget: Budget | None = None,
) -> StanceJudge:
    """Return the judge of one run, storing a language model's answers in the warehouse; nothing is asked yet.

    `deadline`: the seconds left for a question to the language model, None for its own limit.
    """
    if settings.stance_model:
        try:
            return nli_judge(load_nli(settings.stance_model))
        except ModelUnavailable as fault:
            return no_judge(str(fault))
    return open_llm_judge(environ, warehouse=warehouse, deadline=deadline, budget=budget)


def support_judge(settings: Settings) -> Probabilities | None:
    """Return what decides doubtful sentences (`text.support`): the configured NLI cross-encoder; None without one."""
    if not settings.stance_model:
        return None
    try:
        return load_nli(settings.stance_model).probabilities
    except ModelUnavailable:
        return None
