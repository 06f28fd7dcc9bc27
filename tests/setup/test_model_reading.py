"""A language model reads a statement beside the rules; what it adds to the text is dropped."""

import re
from dataclasses import replace
from pathlib import Path

from paper_assets.models.llm_config import llm_config
from paper_assets.setup.model_reading import most_for_reading, read_by_model, reading_model
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.statements import read_statement
from tests.loopback_llm import KEY, loopback_llm, says

NUMBERS = re.compile(r"\b\d[\d,.]*(?= calls?| tokens| at your prices)")
EMPTY: dict[str, list[str]] = {name: [] for name in ("primary", "secondary", "exploratory", "avoid", "less", "authors")}


def test_a_model_translates_topics_and_its_answer_is_kept(tmp_path: Path) -> None:
    text = "Quantisierung von Netzen, keine Arbeiten über Musik."
    answer = {**EMPTY, "primary": ["quantization of networks"], "avoid": ["music", "see https://a.example"]}
    with loopback_llm(says(answer)) as server:
        config = server.config("openai")
        environ = {"LLM_PROVIDER": "openai", "OPENAI_BASE_URL": config.base_url, "OPENAI_API_KEY": KEY}
        ask = reading_model(llm_config(environ), Warehouse(tmp_path / "warehouse.duckdb", deadline=60))
        reading, again = (read_by_model(text, read_statement(text), ask=ask) for _ in range(2))
        assert len(server.requests) == 1
        assert text in server.requests[0].turns[0]
    assert reading == again
    assert (reading.primary, reading.avoid, reading.language) == (("quantization of networks",), ("music",), "de")
    assert reading.notes[0].startswith("looking for: the rules read Quantisierung von Netzen, the model quantization")


def test_what_a_reading_costs_is_said_before_and_after_and_no_more_is_spent(tmp_path: Path) -> None:
    text = "tree kernels, not forests"
    with loopback_llm(says("no JSON"), says({**EMPTY, "primary": ["tree kernels"], "avoid": ["forests"]})) as server:
        config = replace(server.config("openai"), price_in=1.0, price_out=2.0)
        before = most_for_reading(config, text)
        ask = reading_model(config, Warehouse(tmp_path / "w.duckdb", deadline=60))
        reading, again = (read_by_model(text, read_statement(text), ask=ask, config=config) for _ in range(2))
    assert before.startswith(f"{config.model}: at most 2 calls, ")
    assert reading.notes[0].startswith(f"paid to {config.model}: 2 calls, ")
    most, paid = (
        [float(each.replace(",", "")) for each in NUMBERS.findall(words)] for words in (before, reading.notes[0])
    )
    assert all(used <= bound for used, bound in zip(paid, most, strict=True)), (before, reading.notes)
    assert again.notes == (), "a kept answer costs nothing"


def test_people_and_topics_that_the_text_does_not_name_are_dropped(tmp_path: Path) -> None:
    text = "tree kernels, not forests; papers by Ada Lov. Also Ida Mun's (with Lov, Émile): always"
    answer = {
        **EMPTY,
        "primary": ["tree kernels", "crypto coins"],
        "less": ["forests"],
        "authors": ["ada lov", "Emil Dub", "Ida Mun", "Lov, Émile"],
    }
    with loopback_llm(says(answer)) as server:
        config = server.config("anthropic")
        environ = {"LLM_PROVIDER": "anthropic", "ANTHROPIC_BASE_URL": config.base_url}
        ask = reading_model(
            llm_config({**environ, "ANTHROPIC_API_KEY": KEY}), Warehouse(tmp_path / "w.duckdb", deadline=60)
        )
        reading = read_by_model(text, read_statement(text), ask=ask)
    assert (reading.primary, reading.avoid, reading.less) == (("tree kernels",), ("forests",), ("forests",))
    assert reading.authors == ("ada lov", "Ida Mun", "Lov, Émile")


def test_a_model_that_finds_no_topic_empties_no_reading(tmp_path: Path) -> None:
    by_rules = read_statement("tree kernels, not forests")
    with loopback_llm(says({**EMPTY, "avoid": ["forests"]})) as server:
        environ = {"LLM_PROVIDER": "openai", "OPENAI_BASE_URL": server.config("openai").base_url, "OPENAI_API_KEY": KEY}
        ask = reading_model(llm_config(environ), Warehouse(tmp_path / "w.duckdb", deadline=60))
        reading = read_by_model("tree kernels, not forests", by_rules, ask=ask)
    assert (reading.primary, reading.avoid) == (("tree kernels",), ("forests",))
    assert reading.notes == ("the language model found no topic; the rules read this",)
