"""Stance judged by a cross-encoder for natural language inference, sentence by sentence (SPEC R7).

The premise is a sentence of the passage, the hypothesis the claim. Such models were trained on pairs of sentences, and
so the sentence that a label rests on is known. Nothing leaves the machine.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.nli import NLIEncoder
from paper_assets.retrieval.stance import Label, Labels, Passage, StanceJudge, nobody
from paper_assets.text.sentences import sentence_spans

_SURE = 0.5  # probability from which a sentence takes a side; below, neutral is at least as likely
_MOST_SENTENCES = 40  # of a passage; an abstract has a dozen


def open_nli_judge(model: str, load: Callable[[str], NLIEncoder]) -> StanceJudge:
    """The judge of a model's name; loaded when it is first asked. One that cannot be loaded says why."""

    @cache
    def loaded() -> StanceJudge:
        try:
            return nli_judge(load(model))
        except ModelUnavailable as fault:
            return nobody(str(fault))

    def label(claim: str, passages: Sequence[Passage]) -> Labels:
        return loaded().label(claim, passages)

    return StanceJudge(name=model, kind="NLI cross-encoder", label=label)


def nli_judge(model: NLIEncoder) -> StanceJudge:
    """A passage takes the side of the sentence that is surest of one."""

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
    """`probabilities` (n, 2): that each sentence entails the claim, that it contradicts it."""
    if not len(sentences):
        return Label("neutral")
    row, column = divmod(int(np.argmax(probabilities)), 2)
    if not probabilities[row, column] >= _SURE:
        return Label("neutral")
    return Label("contradicts" if column else "supports", " ".join(sentences[row].split()))
