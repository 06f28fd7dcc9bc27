"""Test that the kept language model is private, tested before it is kept, and used; and never shows its key."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput, LLMConfigError
from paper_assets.models.llm_config import llm_config
from paper_assets.setup.language_model import monthly_limit
from paper_assets.stores.kept_settings import LANGUAGE_MODEL, keep_variables, kept_environment, kept_variables
from tests.desk import Desk
from tests.loopback_arxiv import loopback_arxiv
from tests.loopback_llm import KEY, fault, loopback_llm, says

FILE = LANGUAGE_MODEL.name
NOW = datetime(2026, 11, 25, 7, tzinfo=UTC)


def test_the_file_is_for_its_user_alone_and_refused_where_others_can_read_it(tmp_path: Path) -> None:
    file = keep_variables(tmp_path, {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": KEY})
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept_variables(tmp_path) == {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": KEY}
    file.chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        kept_variables(tmp_path)


def test_only_variables_of_language_models_are_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("PATH=/evil\nLD_PRELOAD=x\nOPENAI_MODEL=m\nnonsense\n", encoding="utf-8")
    (tmp_path / FILE).chmod(0o600)
    assert kept_variables(tmp_path) == {"OPENAI_MODEL": "m"}
    with pytest.raises(InvalidInput):
        keep_variables(tmp_path, {"OPENAI_API_KEY": "a\nPATH=/evil"})


def test_a_model_is_tested_kept_shown_and_forgotten(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with loopback_llm(says({"ok": True})) as server:
        url = server.config("openai").base_url
        output = desk.run("llm", "set", "--provider", "openai", "--url", url, "--key-from", "MINE", MINE=KEY)
    assert "The test call worked" in output
    shown = desk.run("llm", "show")
    assert "openai (127.0.0.1" in shown
    assert KEY not in output + shown
    assert "forgotten" in desk.run("llm", "remove")
    assert "not configured" in desk.refused("llm", "show", OPENAI_API_KEY="")


def test_a_key_that_does_not_work_is_not_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with loopback_llm(fault(401)) as server:
        url = server.config("openai").base_url
        process = desk.start("llm", "set", "--provider", "openai", "--url", url, "--key-from", "MINE", MINE=KEY)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "error:" in err
    assert KEY not in out + err
    assert not (tmp_path / "data" / FILE).exists()


def test_every_command_uses_the_kept_model_and_its_use_is_shown(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    # A real arXiv that cannot be reached is asked again and again.
    with loopback_llm(lambda request: says({"ok": True})) as server, loopback_arxiv([]) as arxiv:
        url = server.config("openai").base_url
        desk.run("llm", "set", "--provider", "openai", "--url", url, "--key-from", "MINE", MINE=KEY)
        output = desk.start("doctor", PAPER_ASSETS_ARXIV_URL=arxiv.url).communicate(timeout=600)[0]
    assert "answers; the test used" in output
    assert "220 tokens in" in desk.run("llm", "show")


def test_the_monthly_limit_alone_is_changed_without_the_key(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    keep_variables(tmp_path / "data", {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": KEY})
    assert "1,000 tokens" in desk.run("llm", "set", "--monthly-limit", "1000")
    assert kept_variables(tmp_path / "data")["OPENAI_API_KEY"] == KEY
    assert "needs the prices" in desk.refused("llm", "set", "--monthly-limit", "5 money")
    assert "none" in desk.run("llm", "set", "--monthly-limit", "none")


@pytest.mark.parametrize("text", ["a lot", "5.5", "5 euros", "-3", "1e9", "5 money please"])
def test_an_ambiguous_limit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        monthly_limit(text)


def test_the_environment_goes_before_the_file_and_a_change_is_seen_at_once(tmp_path: Path) -> None:
    environ = kept_environment({"OPENAI_MODEL": "mine", "ANTHROPIC_MODEL": " "}, tmp_path, lambda: NOW)
    assert "LLM_PROVIDER" not in environ
    keep_variables(tmp_path, {"LLM_PROVIDER": "openai", "OPENAI_MODEL": "kept", "ANTHROPIC_MODEL": "kept"})
    assert (environ["LLM_PROVIDER"], environ["OPENAI_MODEL"], environ["ANTHROPIC_MODEL"]) == ("openai", "mine", "kept")
    keep_variables(tmp_path, {"LLM_PROVIDER": "ollama"})
    assert environ["LLM_PROVIDER"] == "ollama"
    assert KEY not in repr(environ)


def test_a_file_that_others_can_read_is_ignored_with_the_reason(tmp_path: Path) -> None:
    keep_variables(tmp_path, {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": KEY}).chmod(0o644)
    with pytest.raises(LLMConfigError, match="chmod 600"):
        llm_config(kept_environment({}, tmp_path, lambda: NOW))
