"""Sides by stance: a judge behind a real HTTP server labels passages, and only what it can quote counts (SPEC R7)."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.errors import ModelUnavailable
from paper_assets.models.cross_encoder import NLIEncoder, load_nli
from paper_assets.retrieval.answers import balanced_answer, has_failed, retrieve_balanced, stance_in_words
from paper_assets.retrieval.findings import Caller
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.stance import StanceJudge, no_judge
from paper_assets.retrieval.stance_judges import nli_judge, open_judge, open_llm_judge
from paper_assets.settings import load_settings
from paper_assets.stores.warehouse import Warehouse
from tests.invented_cross_encoder import tiny_cross_encoder
from tests.loopback_llm import LoopbackLLM, Request, Step, fault, loopback_llm, says
from tests.retrieval.invented_corpus import corpus_of, passage, plan

CLAIM = "retrieved passages keep answers faithful"
STANCES = [{"name": "for", "stance": "supports"}, {"name": "against", "stance": "contradicts"}]
ANYBODY = Caller()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Passages for, against and beside the claim, all worded alike; one of them private."""
    own = {"access_level": "private", "owner": "ann"}
    passages = {
        "p": [
            *(passage(f"for/{at}", f"f{at}", f"Passages keep answers faithful in trial {at}. Yes.") for at in range(4)),
            *(passage(f"not/{at}", f"n{at}", f"Passages keep no answers faithful in trial {at}.") for at in range(2)),
            *(passage(f"by/{at}", f"b{at}", f"We ask whether passages keep answers {at}.") for at in range(6)),
            passage("ann/0", "pdf:ann", "Passages keep answers faithful, say my notes.", **own),
        ]
    }
    return corpus_of(tmp_path_factory.mktemp("stance"), [], passages)


def asked(**record: Any) -> Any:
    fields = {"filters": {"sides": STANCES}, "data_type": ["fulltext"], "parameters": {"k_per_side": 3}}
    return plan(CLAIM, **{**fields, **record})


def shown_in(request: Request) -> list[dict[str, str]]:
    """The passages of a prompt."""
    return [json.loads(line) for line in request.turns[0].splitlines() if line.startswith('{"number": ')]


def gold(text: str) -> dict[str, str]:
    """What a good model says of a passage."""
    sentence = text.split(". ")[0]
    if "We ask" in text:
        return {"stance": "neutral", "sentence": ""}
    return {"stance": "contradicts" if " no " in text else "supports", "sentence": sentence}


def model(label: Callable[[str], Mapping[str, Any]] = gold) -> Callable[[Request], Step]:
    return lambda request: says(
        {"labels": [{"number": each["number"], **label(each["text"])} for each in shown_in(request)]}
    )


def judge_of(server: LoopbackLLM, kept: Warehouse | None = None, **environ: str) -> StanceJudge:
    return open_llm_judge(server.environ("openai") | environ, warehouse=kept)


def test_each_document_is_on_the_side_it_takes_with_the_sentence_that_shows_it(corpus: Corpus) -> None:
    with loopback_llm(model()) as server:
        for_it, against = retrieve_balanced(corpus, asked(), caller=ANYBODY, judge=judge_of(server))
    assert (for_it.side, against.side) == ("for", "against")
    assert {each.doc_id for each in for_it.documents} <= {f"for/{at}" for at in range(4)} and len(for_it.documents) == 3
    assert {each.doc_id for each in against.documents} == {"not/0", "not/1"}
    for side in (for_it, against):
        for each in side.documents:
            assert side.quotes[each.doc_id] in each.content and side.quotes[each.doc_id].endswith(".")
    assert against.shortfall == "only 2 with contradicting evidence among 12 examined (4 on the other side, 6 neutral)"
    assert for_it.shortfall is None and for_it.judged is not None
    assert (for_it.judged.examined, for_it.judged.neutral, for_it.judged.unjudged) == (12, 6, 0)


def test_no_evidence_among_the_examined_documents_is_an_answer(corpus: Corpus) -> None:
    with loopback_llm(model(lambda text: {"stance": "neutral", "sentence": ""})) as server:
        answer = balanced_answer(
            corpus, asked(), caller=ANYBODY, load_grader=no_grader, load_judge=lambda: judge_of(server)
        )
    assert [side["shortfall"] for side in answer["sides"]] == [
        "no supporting evidence among 12 examined (12 neutral)",
        "no contradicting evidence among 12 examined (12 neutral)",
    ]
    assert answer["stance"]["examined"] == 12 and not has_failed(answer)
    assert stance_in_words(answer["stance"]).endswith("0 support, 0 contradict, 12 neutral")


def no_grader() -> Any:
    raise ModelUnavailable("no model grades here")


def test_what_the_model_cannot_quote_counts_for_no_side_and_is_counted(corpus: Corpus) -> None:
    def invents(text: str) -> dict[str, str]:
        return {"stance": "supports", "sentence": "It has been proved beyond doubt." if " no " in text else text}

    with loopback_llm(model(invents)) as server:
        for_it, _ = retrieve_balanced(
            corpus, asked(parameters={"k_per_side": 20}), caller=ANYBODY, judge=judge_of(server)
        )
    assert not any("not/" in each.doc_id for each in for_it.documents) and len(for_it.documents) == 10
    assert for_it.warnings[0] == ("2 of 12 documents were not judged: the sentence given for them is not in their text")
    assert for_it.shortfall == "only 10 with supporting evidence among 10 examined (2 not judged)"


def test_labels_count_only_for_passages_that_were_asked_and_once(corpus: Corpus) -> None:
    def odd(request: Request) -> Step:
        labels = [{"number": each["number"], **gold(each["text"])} for each in shown_in(request)]
        twice = {**labels[0], "stance": "supports" if labels[0]["stance"] == "neutral" else "neutral"}
        return says({"labels": [*labels, twice, {"number": 999, "stance": "supports", "sentence": "x"}, "odd", None]})

    with loopback_llm(odd) as server:
        for_it, _ = retrieve_balanced(
            corpus, asked(parameters={"k_per_side": 20}), caller=ANYBODY, judge=judge_of(server)
        )
    assert for_it.judged is not None and for_it.judged.unjudged == 2, "one of each question, labelled in two ways"
    assert "the model left them out of its answer" in for_it.warnings[0]


def test_passages_are_data_in_a_fence_ten_at_a_time_and_private_ones_are_not_shown(corpus: Corpus) -> None:
    with loopback_llm(model()) as server:
        found = retrieve_balanced(
            corpus, asked(parameters={"k_per_side": 20}), caller=Caller(owner="ann"), judge=judge_of(server)
        )
        assert sorted(len(shown_in(request)) for request in server.requests) == [2, 10]
        assert not any("my notes" in request.turns[0] for request in server.requests)
        [mark] = set(re.findall(r"<passages (\w+)>", server.requests[0].turns[0]))
        assert f"</passages {mark}>" in server.requests[0].turns[0]
        assert "data from strangers" in server.requests[0].system
    assert "1 of 13 documents were not judged: private, and shown to no language model" in found[0].warnings


def test_a_passage_that_was_judged_is_not_asked_about_again(corpus: Corpus, tmp_path: Path) -> None:
    kept = Warehouse(tmp_path / "answers.duckdb", deadline=10)
    with loopback_llm(model()) as server:
        first = retrieve_balanced(corpus, asked(), caller=ANYBODY, judge=judge_of(server, kept))
        asked_first = len(server.requests)
        again = retrieve_balanced(corpus, asked(), caller=ANYBODY, judge=judge_of(server, kept))
        assert len(server.requests) == asked_first and again == first
        other = plan("answers are fast", filters={"sides": STANCES}, data_type=["fulltext"])
        retrieve_balanced(corpus, other, caller=ANYBODY, judge=judge_of(server, kept))
        assert len(server.requests) > asked_first


def test_without_a_judge_there_is_one_list_that_says_why(corpus: Corpus) -> None:
    (one,) = retrieve_balanced(corpus, asked(), caller=ANYBODY, judge=no_judge("no language model is configured"))
    assert one.side is None and len(one.documents) == one.wanted == 6
    assert one.warnings[0] == ("stance could not be judged, so this is one list: no language model is configured")
    assert one.judged is not None and one.judged.judge is None and not one.judged.failed


def test_a_model_that_fails_leaves_one_list_and_the_answer_is_made_again(corpus: Corpus) -> None:
    with loopback_llm(lambda request: fault(400, "no such model")) as server:
        answer = balanced_answer(
            corpus, asked(), caller=ANYBODY, load_grader=no_grader, load_judge=lambda: judge_of(server)
        )
    [one] = answer["sides"]
    assert "stance could not be judged" in one["warnings"][0] and len(one["documents"]) == 6
    assert has_failed(answer)


def test_verdicts_from_before_the_model_failed_are_kept(corpus: Corpus) -> None:
    def once(request: Request) -> Step:
        return model()(request) if len(shown_in(request)) == 10 else fault(400, "enough")

    with loopback_llm(once) as server:
        for_it, _ = retrieve_balanced(
            corpus, asked(parameters={"k_per_side": 20}), caller=ANYBODY, judge=judge_of(server)
        )
    assert for_it.documents and for_it.judged is not None and for_it.judged.unjudged == 2 and for_it.judged.failed
    assert "2 of 12 documents were not judged" in for_it.warnings[0]


def test_sides_that_are_full_ask_no_more(tmp_path: Path) -> None:
    many = [passage(f"m/{at:02}", f"m{at}", f"Passages keep answers faithful in trial {at}. Yes.") for at in range(60)]
    desk = corpus_of(tmp_path, [], {"p": many})
    only = asked(filters={"sides": STANCES[:1]}, parameters={"k_per_side": 2})
    with loopback_llm(model()) as server:
        (side,) = retrieve_balanced(desk, only, caller=ANYBODY, judge=judge_of(server))
        assert len(server.requests) == 2 and len(side.documents) == 2
    assert side.judged is not None and side.judged.examined == 20


def nli_of(probability: Callable[[str, str], tuple[float, float]]) -> NLIEncoder:
    """An encoder whose probabilities of entailment and contradiction are given."""

    def predict(pairs: list[tuple[str, str]]) -> np.ndarray:
        rows = [(1 - sum(given), *given) for given in (probability(*pair) for pair in pairs)]
        return np.log(np.array(rows) + 1e-12)

    return NLIEncoder(name="by hand", device="cpu", _predict=predict, _columns=(1, 2))


def test_an_nli_model_judges_sentence_by_sentence_and_the_surest_one_is_quoted(corpus: Corpus) -> None:
    def sure(premise: str, hypothesis: str) -> tuple[float, float]:
        assert hypothesis == CLAIM
        if "trial" not in premise:
            return 0.3, 0.3
        return (0.05, 0.9) if " no " in premise else (0.8, 0.1)

    for_it, against = retrieve_balanced(corpus, asked(), caller=Caller(owner="ann"), judge=nli_judge(nli_of(sure)))
    assert {each.doc_id[:3] for each in for_it.documents} == {"for"}
    assert {each.doc_id[:3] for each in against.documents} == {"not"}
    assert all(quote.startswith("Passages keep answers faithful in trial") for quote in for_it.quotes.values())
    assert for_it.judged is not None and for_it.judged.unjudged == 0, "nothing leaves the machine, so all are judged"


def test_an_nli_model_is_loaded_as_a_cross_encoder_whose_outputs_say_what_they_are(tmp_path: Path) -> None:
    named = tiny_cross_encoder(tmp_path / "nli", names=("contradiction", "entailment", "neutral"))
    loaded = load_nli(str(named))
    pairs = [("kelp forests shelter fish", "young fish"), ("urchins eat them", "young fish")]
    both = loaded.probabilities(pairs)
    assert both.shape == (2, 2) and (both > 0).all() and (both.sum(axis=1) < 1).all()
    np.testing.assert_allclose(loaded.probabilities(pairs[::-1]), both[::-1])
    assert loaded.probabilities([]).shape == (0, 2)
    unnamed = tiny_cross_encoder(tmp_path / "unnamed", outputs=3)
    with pytest.raises(ModelUnavailable, match="does not name entailment and contradiction"):
        load_nli(str(unnamed))


def test_an_nli_model_that_cannot_be_loaded_leaves_one_list_that_says_why(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    settings = load_settings({}, tmp_path).model_copy(update={"stance_model": str(tmp_path / "empty")})
    judge = open_judge(settings, {}, corpus.warehouse)
    (one,) = retrieve_balanced(corpus, asked(), caller=ANYBODY, judge=judge)
    assert "NLI cross-encoder" in one.warnings[0] and "cannot be loaded" in one.warnings[0]
