"""Test that papers with a hard keyword of the profile appear neither as evidence nor as rewrites on its page."""

from paper_assets.digests.content import papers_named, without_excluded
from tests.digests.invented import answer, attempt, document, paper, rewrite


def test_a_paper_with_an_excluded_keyword_is_not_evidence_and_the_side_reports_it() -> None:
    toads = document("t", "On toads. A survey of toads.", title="On toads")
    frogs = document("f", "Frogs shout.", paper_id="2603.00001", title="On ponds")
    answers = [answer({"for": [toads, frogs], "against": [frogs]})]
    assert papers_named(answers) == {"2603.00009", "2603.00001"}
    [kept], _ = without_excluded(answers, [], papers={}, keywords=["toad"])
    first, second = kept["sides"]
    assert [each["metadata"]["paper_id"] for each in first["documents"]] == ["2603.00001"]
    assert "1 removed because of your excluded keywords" in first["shortfall"]
    assert second == answers[0]["sides"][1]
    assert without_excluded(answers, [], papers={}, keywords=["newt"])[0] == answers


def test_the_stored_paper_decides_where_a_passage_does_not_hold_the_keyword() -> None:
    passage = document("f", "They shout.", paper_id="2603.00001", title="On ponds")
    stored = {"2603.00001": paper(1, abstract="We survey newts.")}
    [kept], _ = without_excluded([answer({"for": [passage]})], [], papers=stored, keywords=["newt"])
    assert kept["sides"][0]["documents"] == []


def test_a_rewrite_of_an_excluded_paper_is_not_shown() -> None:
    item = rewrite("public", attempt(1, 93), outcome="passed", kept=1)
    assert without_excluded([], [item], papers={}, keywords=["newt"])[1] == [item]
    stored = {item.paper_id: paper(1, paper_id=item.paper_id, abstract="We survey newts.")}
    assert without_excluded([], [item], papers=stored, keywords=["newt"])[1] == []
