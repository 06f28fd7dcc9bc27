"""Test that the kept language model is private, tested before it is kept, and used; and never shows its key."""

from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput
from paper_assets.setup.keys import FILE, keep_variables, kept_variables
from tests.desk import Desk
from tests.loopback_llm import KEY, fault, loopback_llm, says


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
        said = desk.run("llm", "set", "--provider", "openai", "--url", url, "--key-from", "MINE", MINE=KEY)
    assert "The test call worked" in said
    shown = desk.run("llm", "show")
    assert "openai (127.0.0.1" in shown
    assert KEY not in said + shown
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
