"""Settings come from a mapping, and an invalid one is reported in one line with its variable."""

import json
from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.settings import KNOWN_HOSTS, RewritingConfig, ScoringConfig, load_settings, variables
from paper_assets.weights import DEFAULT_WEIGHTS, DIMENSIONS

HERE = Path("/nowhere")
OTHERS = ("must_keywords", "author_trust", "institution_trust", "recency", "practicality")
EVEN = {"semantic_relevance": 0.5, **dict.fromkeys(OTHERS, 0.1)}


def test_an_empty_environment_and_empty_variables_give_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in variables():
        monkeypatch.setenv(variable, "99")  # the environment of the process is not read
    settings = load_settings({}, HERE)
    assert settings == load_settings(dict.fromkeys(variables(), "  "), HERE)
    assert (settings.home, settings.profiles_dir) == (HERE / "data", HERE / "profiles")
    assert settings.output_dir == settings.pdf_dir == HERE / "data" / "output"
    assert (settings.scoring, settings.rewriting) == (ScoringConfig(), RewritingConfig())


def test_relative_folders_are_in_the_working_folder_and_one_follows_the_other() -> None:
    settings = load_settings({"PAPER_ASSETS_HOME": "desk"}, HERE)
    assert (settings.home, settings.pdf_dir) == (HERE / "desk", HERE / "desk" / "output")
    settings = load_settings({"PAPER_ASSETS_HOME": "/desk", "OUTPUT_DIR": "out", "PAPER_ASSETS_PROFILES": "~/p"}, HERE)
    assert (settings.home, settings.output_dir, settings.pdf_dir) == (Path("/desk"), HERE / "out", HERE / "out")
    assert settings.profiles_dir == Path.home() / "p"


def test_each_variable_becomes_a_value_of_its_kind() -> None:
    settings = load_settings(
        {
            "PAPER_ASSETS_FIRST_DAY": "2026-01-01",
            "PAPER_ASSETS_CATEGORIES": " cs.IR, ,cs.DL ",
            "PAPER_ASSETS_KNOWN_HOSTS": ",",
            "PAPER_ASSETS_ARXIV_PDF_URL": "http://127.0.0.1:1/pdf/",
            "PAPER_ASSETS_SEMANTIC_SCHOLAR": "ON",
            "PAPER_ASSETS_SENSOR_INTERVAL": "15.7",
            "PAPER_ASSETS_CALL_LIMIT": "500",
            "SOMETHING_ELSE": "x",
        },
        HERE,
    )
    assert settings.first_day == date(2026, 1, 1)
    assert settings.categories == ("cs.IR", "cs.DL")
    assert settings.known_hosts == KNOWN_HOSTS
    assert settings.arxiv_pdf_url == "http://127.0.0.1:1/pdf"
    assert settings.semantic_scholar is True
    assert settings.sensor_interval == 15
    assert settings.call_limit == 50


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("PAPER_ASSETS_REQUEST_TIMEOUT", "soon", "must be a number of seconds from 0, got 'soon'"),
        ("PAPER_ASSETS_STORE_DEADLINE", "nan", "must be a number of seconds from 0, got 'nan'"),
        ("PAPER_ASSETS_REQUEST_INTERVAL", "-1", "must be a number of seconds from 0, got '-1'"),
        ("PAPER_ASSETS_SENSOR_INTERVAL", "inf", "must be a number of seconds from 0, got 'inf'"),
        ("PAPER_ASSETS_PDF_MEGABYTES", "0", "must be a number above 0, got '0'"),
        ("PAPER_ASSETS_SEMANTIC_SCHOLAR", "perhaps", "must be on or off, got 'perhaps'"),
        ("PAPER_ASSETS_FIRST_DAY", "monday", "must be a day like 2025-01-01, got 'monday'"),
        ("PAPER_ASSETS_HOME", "~nobody-of-this-name/x", "must be a folder with a name in UTF-8, got '~nobody-of-th"),
        ("PAPER_ASSETS_HOME", "caf\udce9", r"must be a folder with a name in UTF-8, got 'caf\udce9'"),
        ("PAPER_ASSETS_ARCHIVE", "mine", "must be a name that ends in its version, like optim_best_practices_v1"),
        ("PAPER_ASSETS_REWRITING", "passes=high", ": passes: input should be a valid integer"),
        ("PAPER_ASSETS_WEIGHTS", "0.3", 'must be JSON like {"general": '),
        ("PAPER_ASSETS_WEIGHTS", "[" * 100_000, "must be JSON like"),
        ("PAPER_ASSETS_WEIGHTS", '{"all": {}}', ": 'all' is not a purpose; use general, literature_review, "),
        ("PAPER_ASSETS_WEIGHTS", '{"general": {"recency": 1}}', ": general: semantic_relevance: field required"),
        ("PAPER_ASSETS_WEIGHTS", json.dumps({"general": {**EVEN, "x": 0}}), ": general: x: unknown key"),
        ("PAPER_ASSETS_WEIGHTS", json.dumps({"general": {**EVEN, "recency": "0.1"}}), ": general: recency: "),
        ("PAPER_ASSETS_WEIGHTS", json.dumps({"general": {**EVEN, "recency": -0.1}}), ": general: recency: "),
        ("PAPER_ASSETS_WEIGHTS", json.dumps({"general": {**EVEN, "recency": 0.2}}), "sum to 1.1; they must sum to 1"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_its_variable(variable: str, value: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_settings({variable: value}, HERE)
    line = str(refused.value)
    assert line.startswith(variable)
    assert reason in line
    assert "\n" not in line and len(line) < 300


def test_a_working_folder_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"^PAPER_ASSETS_HOME must be a folder .* got '/caf\\udce9'$"):
        load_settings({}, Path("/caf\udce9"))


def test_weights_of_one_purpose_leave_the_other_numbers_as_they_are() -> None:
    scoring = load_settings({"PAPER_ASSETS_WEIGHTS": json.dumps({"general": EVEN})}, HERE).scoring
    assert scoring.weights["general"] == tuple(EVEN.get(name, 0.0) for name in DIMENSIONS)
    assert {**scoring.weights, "general": DEFAULT_WEIGHTS["general"]} == DEFAULT_WEIGHTS
    others = [field.name for field in fields(ScoringConfig) if field.name != "weights"]
    assert [getattr(scoring, name) for name in others] == [getattr(ScoringConfig(), name) for name in others]
