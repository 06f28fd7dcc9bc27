"""The critic: reasons first, subscores, and a total that code makes (B9)."""

from pathlib import Path

import pytest

from paper_assets.errors import LLMConfigError, LLMError
from paper_assets.models.llm_config import critic_config, llm_config
from paper_assets.rewriting.critic import SUBSCORES, Critique, in_words, total
from paper_assets.rewriting.personas import persona
from paper_assets.rewriting.policy import LEVELS
from paper_assets.rewriting.writing import new_item, open_writer, write_attempt
from paper_assets.settings import RewritingConfig
from tests.loopback_llm import Kept, loopback_llm, says
from tests.rewriting.scripted import NOW, PAPER, Play, draft, is_critic, verdict, writer_of


def critique(score: int, *faults: tuple[str, str]) -> Critique:
    listed = [{"kind": kind, "words": words, "why": "so"} for kind, words in faults]
    return Critique.model_validate(verdict(score, "Mend it.", listed))


def test_the_total_is_the_sum_of_the_subscores_under_the_cap_of_the_worst_fault() -> None:
    assert total(critique(96)) == 96
    assert total(critique(96, ("wording", "clumsy"), ("omission", "the data"), ("level", "sketch"))) == 96
    assert total(critique(96, ("invented", "Finland"))) == 70
    assert total(critique(60, ("invented", "Finland"))) == 60
    assert total(critique(96, ("wrong_number", "99"), ("turned_round", "slower"))) == 50
    assert total(critique(100, ("overstated", "always"))) == 50
    assert total(critique(100, ("other_text", "all of it"))) == 0


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Hallucination", "invented"),
        ("number changed", "wrong_number"),
        ("exaggeration", "overstated"),
        ("?", "wording"),
    ],
)
def test_a_kind_in_other_words_is_understood(said: str, meant: str) -> None:
    assert critique(90, (said, "x")).faults[0].kind == meant


def test_the_critic_thinks_before_it_scores() -> None:
    assert list(Critique.model_fields) == ["faults", *SUBSCORES, "advice"]
    with loopback_llm(Play(80)) as server:
        write_attempt(writer_of(server), new_item(PAPER, "public"), [])
        schema = server.requests[1].schema
    assert schema is not None and next(iter(schema["properties"])) == "faults"


def test_the_critic_is_told_neither_thresholds_nor_caps() -> None:
    for level in LEVELS:
        with loopback_llm(Play(80)) as server:
            write_attempt(writer_of(server), new_item(PAPER, level), [])
            critic = server.requests[1]
        said = critic.system.partition("JSON Schema")[0].replace(persona(level).length, "")
        config = RewritingConfig()
        for number in (config.passes, config.asks, config.archived, config.recalled, config.enough, 70, 50):
            assert f" {number} " not in f" {said} ".replace(",", " ").replace(".", " "), (level, number)


def test_faults_and_subscores_are_kept_with_the_attempt_and_shown_to_the_next_author() -> None:
    fault = [{"kind": "invented", "words": "Finland", "why": "no place is named"}]
    told = says(verdict(93, f"critique of {draft(1)}", fault))
    with loopback_llm(Play(93, 80, steps={2: told})) as server:
        writer = writer_of(server)
        first = write_attempt(writer, new_item(PAPER, "public"), [])
        write_attempt(writer, new_item(PAPER, "public"), [first])
        second = server.requests[2].turns[0]
    assert (first.score, sum(first.subscores), first.critic) == (70, 93, "llama3.2")
    assert first.critique == "invented: “Finland” (no place is named)\ncritique of draft alpha"
    assert first.critique in second and in_words(critique(90)) == "Mend it."


def test_the_critic_may_be_another_model_than_the_actor() -> None:
    with loopback_llm(Play(80)) as actor, loopback_llm(Play(80)) as critic:
        environ = {
            **critic.environ("openai"),
            **actor.environ("ollama"),
            "LLM_CRITIC_PROVIDER": "openai",
            "LLM_CRITIC_MODEL": "judge-1",
        }
        writer = open_writer(environ, archive=None, cache=Kept(), clock=lambda: NOW, config=RewritingConfig())
        kept = write_attempt(writer, new_item(PAPER, "public"), [])
        assert [is_critic(request) for request in actor.requests] == [False]
        assert [is_critic(request) for request in critic.requests] == [True]
        assert critic.requests[0].body["model"] == "judge-1"
    assert (kept.model, kept.critic) == ("llama3.2", "judge-1")


def test_a_critic_is_the_actor_unless_something_else_is_said_and_faults_of_its_set_up_name_it() -> None:
    environ = {"LLM_PROVIDER": "ollama"}
    actor = llm_config(environ)
    assert critic_config(environ, actor=actor) is actor
    assert critic_config({**environ, "LLM_CRITIC_MODEL": "judge-1"}, actor=actor).model == "judge-1"
    other = critic_config({**environ, "LLM_CRITIC_PROVIDER": "openai", "OPENAI_API_KEY": "k"}, actor=actor)
    assert (other.provider, other.model) == ("openai", "gpt-6-luna")
    with pytest.raises(LLMConfigError, match=r"LLM_CRITIC_PROVIDER.*OPENAI_API_KEY"):
        critic_config({**environ, "LLM_CRITIC_PROVIDER": "openai"}, actor=actor)
    broken = {**environ, "LLM_CRITIC_PROVIDER": "nobody"}
    writer = open_writer(broken, archive=None, cache=None, clock=lambda: NOW, config=RewritingConfig())
    with pytest.raises(LLMError, match="'nobody' is unknown"):
        write_attempt(writer, new_item(PAPER, "public"), [])


# The language asked for (B11)


@pytest.mark.parametrize(("language", "name"), [(None, "English"), ("ko", "Korean")])
def test_a_rewrite_is_asked_for_in_the_language_of_the_profile_or_of_the_original(
    language: str | None, name: str, tmp_path: Path
) -> None:
    item = new_item(PAPER, "public", language=language)
    with loopback_llm(Play(80)) as server:
        kept = write_attempt(writer_of(server), item, [])
        actor, critic = (request.system for request in server.requests)
    assert f"Write in {name}" in actor and f"Asked for were: {name};" in critic
    assert any("not in Korean" in reason for reason in kept.stopped) == (language == "ko")
    assert (item.item == new_item(PAPER, "public").item) == (language is None), "another language is another task"
