"""Test the content of a digest: each statement against rows that cause it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from paper_assets.digests.content import (
    ChangeSet,
    Digest,
    Moved,
    change_set,
    digest_of,
    papers_named,
    without_excluded,
)
from paper_assets.digests.evidence import PassageEntry
from paper_assets.digests.html import html_page
from paper_assets.digests.mail import mail_html, mail_text
from paper_assets.digests.markdown import markdown_page
from paper_assets.profile import ProfileContent, profile_content
from paper_assets.ranking.changes import changes_between
from paper_assets.settings import RewritingConfig
from tests.digests.invented import (
    NOW,
    answer,
    attempt,
    candidate,
    cited,
    digest,
    document,
    paper,
    ranking_of,
    rewrite,
    row,
    stored,
    written,
)


def test_an_empty_day_says_why_it_is_empty() -> None:
    rows = [
        candidate(f"2603.0000{n}", reason) for n, reason in enumerate(["ALREADY_READ", "TOO_OLD:2019", "ALREADY_READ"])
    ]
    found = digest_of(stored([], rows=[], candidates=rows), config=RewritingConfig())
    assert (found.headline, found.entries) == ("Nothing to read today", ())
    assert f"{found.window} {found.filtered}" == "3 new papers. 3 filtered out: 2 read already, 1 too old."
    empty = stored([], rows=[], candidates=[])
    assert digest_of(empty, config=RewritingConfig()).window == "No new papers."
    unfetched = digest_of(replace(empty, fetched=False), config=RewritingConfig())
    assert unfetched.window == "The papers of this day are not fetched yet."


def test_a_list_says_how_many_papers_of_its_window_are_new_since_the_list_before() -> None:
    week = replace(stored([], rows=[], candidates=[candidate(f"2603.0000{n}", None) for n in range(3)]), new=1)
    assert digest_of(week, config=RewritingConfig()).window == "1 new of 3 papers."
    content = profile_content({"interests": {"primary": ["ponds"]}, "feed": {"window_days": 7}}, source="ann")
    with_days = digest_of(replace(week, content=content), config=RewritingConfig())
    assert with_days.window == "1 new of 3 papers in the last 7 days."


def test_a_paper_brings_its_why_its_parts_and_its_links() -> None:
    [entry] = digest(
        paper(github_url="https://github.com/a/b"), rows=[row(1, "2603.00001", soft_penalty=-0.15)]
    ).entries
    assert entry.sum.startswith("0.440 = ")
    assert [(part.name, round(part.points, 2)) for part in entry.parts] == [
        ("semantic_relevance", 0.24),
        ("recency", 0.2),
        ("soft_penalty", -0.15),
    ]
    assert entry.why[0] == "Place 1 of 1."
    assert [link.label for link in entry.links] == ["arXiv", "PDF", "HTML", "Code"]
    assert entry.tags == (("VERY_RECENT", "very recent"),)


def test_a_paper_whose_id_is_not_arxivs_has_no_link_to_arxiv() -> None:
    [entry] = digest(paper(paper_id="our own: 1", pdf_url=None)).entries
    assert entry.links == ()


def test_a_paper_that_a_later_fetch_has_removed_is_still_named_by_its_title() -> None:
    rows = stored([], rows=[row(1, "2603.00001")], candidates=[candidate("2603.00001", title="Gone frogs")])
    [entry] = digest_of(rows, config=RewritingConfig()).entries
    assert (entry.title, entry.lead, entry.authors) == ("Gone frogs", "", "")


def test_a_long_abstract_is_folded_and_a_short_one_is_not() -> None:
    long = "Frogs were counted again. " * 60
    [short, folded] = digest(paper(1), paper(2, abstract=long)).entries
    assert (short.lead, short.rest) == ("Frogs were counted. There were many.", None)
    assert len(folded.lead) <= 480 and f"{folded.lead} {folded.rest}" == long.strip()
    [endless] = digest(paper(abstract="word" + " word" * 200)).entries
    assert endless.lead.endswith("word…") and f"{endless.lead[:-1]} {endless.rest}" == "word" + " word" * 200


def test_many_authors_are_counted() -> None:
    six, eight = digest(paper(1, authors=tuple("ABCDEF")), paper(2, authors=tuple("ABCDEFGH"))).entries
    assert six.authors == "A, B, C, D, E, F"
    assert eight.authors == "A, B, C, D, E and 3 others"


def test_the_contrastive_pick_says_from_what_it_differs() -> None:
    papers = [paper(1), paper(2)]
    found = digest(
        *papers,
        rows=[row(1, "2603.00001"), row(2, "2603.00002", tags=["CONTRASTIVE_PICK", "CONTRASTIVE_METHOD"])],
        comparison_notes=[
            {
                "paper_ids": ["2603.00002", "2603.00001"],
                "relation": "contrastive",
                "contrast_point": "as 2603.00001, but wet",
            }
        ],
        contrastive_info={"contrast_dimensions": [{"dimension": "method", "others": ["dry"], "this": ["wet", "damp"]}]},
    )
    assert found.entries[0].contrast is None
    pick = found.entries[1].contrast
    assert pick is not None
    assert pick.point == "as no. 1, but wet"
    assert pick.rows == (("method", "wet, damp", "dry"),)
    assert found.notes == (), "the pick's note is shown with the pick"


def test_a_comparison_names_papers_by_their_place() -> None:
    note = {
        "paper_ids": ["2603.00001", "2603.00011"],
        "relation": "similar_approach",
        "shared_traits": ["ponds"],
        "differentiator": "2603.00001: dry; 2603.00011: wet",
    }
    alike = {**note, "differentiator": "title and abstract show no difference"}
    found = digest(paper(1), paper(11), comparison_notes=[note, alike])
    assert found.notes == ("No. 1 and no. 2 are similar (ponds). No. 1: dry; no. 2: wet.",)


@pytest.mark.parametrize(
    ("item", "level", "state", "texts"),
    [
        (rewrite("public", attempt(1, 93), outcome="passed", kept=1), "for general readers", "93 of 100", 2),
        (rewrite("student", attempt(1, 87)), "for a student", "87 of 100, waiting for a decision", 0),
        (rewrite("expert"), "for an expert", "not written yet", 0),
        (rewrite("expert", attempt(1, 60)), "for an expert", "not written yet", 0),
    ],
)
def test_a_rewrite_has_its_score_or_the_reason_why_it_waits(item: Any, level: str, state: str, texts: int) -> None:
    [version] = digest(paper(), rewrites=[item]).entries[0].versions
    assert (version.level, version.state, len(version.paragraphs)) == (level, state, texts)


def test_a_rewrite_says_that_a_machine_wrote_it_which_one_and_what_is_doubtful() -> None:
    doubtful = replace(attempt(1, 93), model="actor-1", unsupported=("42%", "Finland"), stopped=("3 words",))
    kept = rewrite("public", doubtful, outcome="accepted", kept=1)
    kept = replace(kept, accepted=frozenset({"finland"}), language="de")
    found = digest(paper(), rewrites=[kept])
    [version] = found.entries[0].versions
    assert version.by == "Written by a language model (actor-1) from the abstract; not a substitute for it."
    assert version.doubts == (
        "Not in the original: 42%.",
        "Not in the original, accepted by a person: Finland.",
        "Accepted by a person, although 3 words.",
        "Not checked against the original: all sentences.",
    )
    page, text = html_page(found), markdown_page(found)
    assert 'lang="de"' in page and all(line in page for line in (version.by, *version.doubts))
    assert "Written by a language model (actor-1)" in text and "Not in the original: 42%." in text


def test_a_rewrite_says_which_name_was_neither_found_nor_checked() -> None:
    kept = replace(attempt(1, 93), text="Zorvax likes this paper.")
    item = rewrite("public", kept, outcome="passed", kept=1)
    [version] = digest(paper(), rewrites=[item]).entries[0].versions
    assert version.doubts == ("Not checked against the original: all sentences, Zorvax.",)
    [version] = digest(paper(), rewrites=[replace(item, accepted=frozenset({"zorvax"}))]).entries[0].versions
    assert version.doubts == ("Not checked against the original: all sentences.",)


def test_a_rewrite_that_the_gate_holds_back_waits_and_says_why() -> None:
    attempts = [replace(attempt(n, 96), stopped=("3 words, where 120 to 200 were asked for",)) for n in range(1, 6)]
    [version] = digest(paper(), rewrites=[rewrite("public", *attempts)]).entries[0].versions
    assert (version.state, version.paragraphs) == ("96 of 100, waiting for a decision", ())
    assert version.doubts == ("Held back: 3 words, where 120 to 200 were asked for",)


def test_a_rewrite_that_fell_short_has_a_warning_and_a_cancelled_one_is_not_shown() -> None:
    attempts = [attempt(n, 60 + n) for n in range(1, 9)]
    kept = rewrite("public", *attempts, outcome="best_with_warning", kept=8)
    gone = rewrite("expert", attempt(1, 60), outcome="cancelled")
    [version] = digest(paper(), rewrites=[kept, gone]).entries[0].versions
    assert version.state == "68 of 100, the best attempt, below the target"


def test_a_rewrite_of_a_paper_below_the_list_has_its_title_and_url() -> None:
    below = replace(rewrite("public", attempt(1, 95), outcome="passed", kept=1), paper_id="2603.00007", title="Toads")
    odd = replace(rewrite("expert"), paper_id="our own: 1", title="")
    gone = replace(rewrite("expert", attempt(1, 60), outcome="cancelled"), paper_id="2603.00008")
    found = digest(paper(), rewrites=[below, odd, gone])
    assert [(each.title, each.url, [v.state for v in each.versions]) for each in found.also_rewritten] == [
        ("Toads", "https://arxiv.org/abs/2603.00007", ["95 of 100"]),
        ("our own: 1", None, ["not written yet"]),
    ]
    assert found.entries[0].versions == ()
    assert "Toads" in html_page(found) and "### [Toads](https://arxiv.org/abs/2603.00007)" in markdown_page(found)


def test_a_digest_is_as_new_as_the_latest_rewrite_or_decision_that_it_shows() -> None:
    midnight, later = datetime(2026, 3, 13, tzinfo=UTC), datetime(2026, 3, 20, 8, tzinfo=UTC)
    waiting, failed = rewrite("public", attempt(1, 87)), rewrite("public", attempt(1, 60))
    assert digest(paper()).updated == digest(paper(), rewrites=[failed]).updated == midnight
    assert digest(paper(), rewrites=[waiting]).updated == NOW
    assert digest(paper(), rewrites=[waiting], decided_at=later).updated == later


def evidence(**more: Any) -> Any:
    [found] = digest(paper(), answers=[answer(**more)]).evidence
    return found


def test_each_side_of_a_question_has_its_documents_and_its_gap() -> None:
    found = answer({"loud": [document()], "quiet": []})
    found["sides"][1] |= {"shortfall": "none on quiet", "error": "the index is gone"}
    [question] = digest(paper(), answers=[found]).evidence
    loud, quiet = question.sides
    assert question.question == "Are frogs loud?"
    assert (loud.passages[0].title, loud.passages[0].about) == ("Loud frogs", "2603.00009, 11 March 2026")
    assert loud.passages[0].text == "Frogs are loud at night."
    assert (loud.gap, quiet.gap, quiet.passages) == (None, "the index is gone; none on quiet", ())


@pytest.mark.parametrize(
    ("chunk", "shown"),
    [
        ("Frogs are loud at", "Frogs are loud at"),
        ("frogs Frogs are", "Frogs are"),
        ("at night.", "… at night."),
        ("Loud frogs", "Frogs are loud at night."),
        ("of another text", "Frogs are loud at night."),
    ],
)
def test_the_chunk_that_answers_best_is_shown_without_the_title(chunk: str, shown: str) -> None:
    found = answer({"loud": [document()]})
    worse = {"doc_id": "d", "text": "night"}
    found["sides"][0]["graded"] = {"chunks": [{"doc_id": "d", "text": chunk}, worse], "notes": ["graded so"]}
    shown_digest = digest(paper(), answers=[found, found])
    assert shown_digest.evidence[0].sides[0].passages[0].text == shown
    assert shown_digest.remarks[1:] == ("Graded so",), "once, at the foot"


def test_a_chunk_is_cut_out_of_a_text_that_does_not_begin_with_its_title() -> None:
    found = answer({"loud": [document(content="Frogs are loud. Night falls.")]})
    found["sides"][0]["graded"] = {"chunks": [{"doc_id": "d", "text": "Frogs are loud."}], "notes": []}
    [passage] = digest(paper(), answers=[found]).evidence[0].sides[0].passages
    assert passage.text == "Frogs are loud."
    [whole] = evidence(sides={"loud": [document(content="Frogs are loud. Night falls.")]}).sides[0].passages
    assert whole.text == "Frogs are loud. Night falls."


def test_a_question_without_sides_is_answered_by_all() -> None:
    found = answer({"": [document()]})
    found["sides"][0]["side"] = None
    assert [side.name for side in digest(paper(), answers=[found]).evidence[0].sides] == ["all"]
    assert [side.name for side in evidence(sides={"loud": []}).sides] == ["loud"]


@pytest.mark.parametrize("unknown", [0, None, 2026, "20260311"])
def test_a_document_without_a_whole_date_is_shown_without_one(unknown: object) -> None:
    [passage] = evidence(sides={"loud": [document(date_int=unknown)]}).sides[0].passages
    assert passage.about == "2603.00009"


def test_a_question_for_links_only_gets_no_text() -> None:
    assert evidence(sides={"loud": [document()]}, generation_required=False).sides[0].passages[0].text is None


def test_neither_name_nor_text_nor_url_of_a_private_document_is_shown() -> None:
    for access in ("private", None):
        private = document(access_level=access, url="https://desk.example/Loud%20frogs.pdf")
        [passage] = evidence(sides={"loud": [private]}).sides[0].passages
        assert passage == PassageEntry(title="a private document", url=None, about="", text=None)


def changed(before: list[dict[str, Any]], after: list[dict[str, Any]], **header: Any) -> tuple[ChangeSet, ...]:
    then, now = ranking_of(before), ranking_of(after, **header)
    found = changes_between(
        then.rows, now.rows, headers=(then.header, now.header), removed={"2603.00009": "ALREADY_SHOWN"}
    )
    papers = [paper(number) for number in (1, 2, 8, 9)]
    shown_digest: Digest = digest_of(
        stored(papers, rows=after, changes=[("since yesterday", found)], **header), config=RewritingConfig()
    )
    return shown_digest.changes


def moved(number: int, before: int, after: int) -> Moved:
    paper_id = f"2603.{number:05d}"
    url = f"https://arxiv.org/abs/{paper_id}"
    return Moved(paper_id=paper_id, title=f"On ponds, part {number}", url=url, before=before, after=after)


def test_the_papers_of_a_change_are_links_in_page_and_markdown() -> None:
    before = [row(1, "2603.00001"), row(2, "2603.00009")]
    after = [row(1, "2603.00002"), row(2, "2603.00001", final=0.26, semantic_relevance=0.2)]
    then, now = ranking_of(before), ranking_of(after)
    found = changes_between(then.rows, now.rows, headers=(then.header, now.header), removed={})
    made = digest(*map(paper, (1, 2, 9)), rows=after, changes=[("since yesterday", found)])
    html, markdown = (render(made).partition("What changed")[2] for render in (html_page, markdown_page))
    assert '<a href="#paper-2603.00002">1</a>' in html
    for number in (1, 9):
        url = f"https://arxiv.org/abs/2603.0000{number}"
        assert f'<a href="{url}">On ponds, part {number}</a>' in html
        assert f"[On ponds, part {number}]({url})" in markdown


def test_the_headline_leaves_the_number_of_papers_to_the_sentence_that_follows_it() -> None:
    papers = [paper(number) for number in range(1, 4)]
    rows = [row(rank, each.paper_id, shown=rank <= 2) for rank, each in enumerate(papers, 1)]
    made = digest(*papers, rows=rows)
    assert f"{made.headline}. {made.window}" == "2 papers for you. 3 new papers."


def test_papers_that_entered_left_and_moved_are_listed_with_the_reason() -> None:
    before = [row(1, "2603.00001"), row(2, "2603.00009"), row(3, "2603.00008")]
    [changes] = changed(before, [row(1, "2603.00002"), row(2, "2603.00001", final=0.26, semantic_relevance=0.2)])
    assert changes.since == "since yesterday"
    assert changes.entered == (("new among the candidates", (moved(2, 0, 1),)),)
    assert changes.moved == (("relevance to your interests -0.18", moved(1, 1, 2)),)
    assert changes.left == (
        ("it was in your list on an earlier day", (moved(9, 2, 0),)),
        ("no longer in the window", (moved(8, 3, 0),)),
    )


def test_a_paper_that_has_left_the_window_keeps_its_title() -> None:
    before, after = [row(1, "2603.00001"), row(2, "2603.00008")], [row(1, "2603.00001")]
    then, now = ranking_of(before), ranking_of(after)
    found = changes_between(then.rows, now.rows, headers=(then.header, now.header), removed={})
    seen = [candidate("2603.00001", title="as the candidates wrote it")]
    day = stored([paper(1), paper(8)], rows=after, candidates=seen, changes=[("since yesterday", found)])
    [changes] = digest_of(day, config=RewritingConfig()).changes
    assert changes.left == (("no longer in the window", (moved(8, 2, 0),)),)


def test_a_paper_that_moved_only_because_of_others_is_not_reported_as_changed() -> None:
    before = [row(1, "2603.00009"), row(2, "2603.00001")]
    [changes] = changed(before, [row(1, "2603.00001", final=0.4109, semantic_relevance=0.703)])
    assert changes.moved == (("others came or went", moved(1, 2, 1)),)


def test_an_edited_profile_is_described_in_words_and_an_unchanged_list_not_at_all() -> None:
    rows = [row(1, "2603.00001")]
    assert changed(rows, rows, as_of="2026-03-13") == ()
    [changes] = changed(rows, rows, profile_hash="b", llm_model="m")
    assert changes.otherwise == ("the profile was edited", "language model: none → m")


def test_an_edit_is_named_once_in_its_own_words_and_not_where_the_page_shows_it_apart() -> None:
    edit = "interests.primary: + frogs (loud): wet, and ponds (small) and {deep}"
    then = ranking_of([row(1, "2603.00001"), row(2, "2603.00002")])
    now = ranking_of([row(1, "2603.00002", final=0.9, semantic_relevance=0.95), row(2, "2603.00001")], profile_hash="b")
    headers, edits = (then.header, now.header), {"interests.primary": edit}
    found = changes_between(then.rows, now.rows, headers=headers, removed={}, edits=edits)
    whole, apart = (change_set(found, since="", titles={}, edit_named=named) for named in (True, False))
    assert whole and apart
    assert (whole.otherwise, apart.otherwise) == ((f"the profile was edited: {edit}",), ())
    assert whole.moved == apart.moved and whole.moved[0][0] == "your edit: relevance to your interests +0.07"


def test_a_rewrite_that_cannot_be_shown_is_named_and_the_others_are_shown() -> None:
    broken = rewrite("public", attempt(1, 93), outcome="passed", kept=3)  # there is no third attempt
    whole = rewrite("student", attempt(1, 93), outcome="passed", kept=1)
    found = digest(paper(), rewrites=[broken, whole])
    [entry] = found.entries
    assert [version.level for version in entry.versions] == ["for a student"]
    [warning] = found.warnings
    assert warning.startswith("the rewrite of 2603.00001 is not shown: unexpected IndexError")


def test_warnings_are_on_the_page_and_the_absence_of_a_language_model_at_its_foot() -> None:
    found = digest(paper(), warnings=["keywords only"], llm_note="no key.")
    assert found.warnings == ("keywords only",)
    assert found.remarks[-1] == "No key"


def test_the_headline_counts_by_level_and_the_likely_papers_that_follow_are_one_line_each() -> None:
    papers = [paper(number) for number in range(1, 30)]
    rows = [row(rank, each.paper_id, shown=rank <= 2, semantic_relevance=0.9) for rank, each in enumerate(papers, 1)]
    levels = {"very likely": 1, "likely": 0, "possible": 1}
    page = digest(*papers, rows=rows, threshold=0.03, levels=levels, more_likely=22)
    assert page.headline == "2 papers for you: 1 likely, 1 possible. 22 more likely"
    assert [(entry.rank, entry.level, entry.dots) for entry in page.entries] == [
        (1, "very likely", 3),
        (2, "very likely", 3),
    ]
    assert [line.rank for line in page.more_likely] == list(range(3, 25))
    for text in (markdown_page(page), html_page(page), " ".join(mail_text(page).split()), mail_html(page)):
        assert page.headline in text and "very likely" in text
        after = text.partition("22 more likely")[2].partition("22 more likely")[2]
        assert all(f"part {number}" in after for number in range(3, 23)) and "part 23" not in after
        assert "and 2 more" in after


def test_a_day_without_a_possible_paper_is_quiet() -> None:
    nothing = digest(paper(1), rows=[row(1, "2603.00001", shown=False)], threshold=0.03, quiet=True)
    assert nothing.headline == "A quiet day: no paper is about your interests"
    assert (nothing.entries, nothing.more_likely) == ((), ())


LOUD = "Frogs are loud at night, and $x < 2$ of them sleep."
FAR = "They are heard from two kilometres away."


def test_an_answer_has_numbered_quotations_with_paper_and_section_in_every_form() -> None:
    made = digest(
        paper(),
        answers=[written(cited("Frogs are loud.", LOUD), cited("One hears them.", FAR, LOUD, section="4.2 Far"))],
    )
    [question] = made.evidence
    assert question.written is not None
    [(side, sentences)] = question.written.sides
    assert (side, [each.numbers for each in sentences]) == ("", [(1,), (2, 1)])
    markdown, html = markdown_page(made), html_page(made)
    assert "- Frogs are loud. (1)\n- One hears them. (2, 1)\n" in markdown
    assert "\n2. “They are heard from two kilometres away.” [Loud frogs](https://arxiv.org/abs/2603.00009) " in markdown
    assert "(2603.00009, section 4.2 Far)" in markdown
    assert "<sup>2, 1</sup>" in html and '<li value="2"><q dir="auto">They are heard' in html
    assert "<small>2603.00009, section 4.2 Far</small>" in html and "<math" in html.partition("<q ")[2]
    for page in (markdown, html):
        assert "Written by invented-1 from 12 passages; 1 sentence left out: not supported by a quotation." in page


def test_an_answer_for_and_against_is_divided_and_one_without_sentences_reports_it() -> None:
    sides = written(cited("Yes.", LOUD, stance="supports"), cited("No.", FAR, stance="contradicts"))
    markdown = markdown_page(digest(paper(), answers=[sides]))
    assert markdown.index("**For**") < markdown.index("- Yes. (1)") < markdown.index("**Against**")
    empty = digest(paper(), answers=[written(kind="extractive", model=None, dropped_sentences=0, notes=["no model"])])
    for page in (markdown_page(empty), html_page(empty)):
        assert "The stored papers do not answer this." in page and "no model" in page.casefold()
        assert "Quoted without a language model from 12 passages." in page


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


def test_papers_by_followed_people_stand_beside_the_list_in_every_form_whatever_the_topic() -> None:
    papers = [paper(1), paper(2, authors=("Chris Potts",)), paper(3, authors=("Mina Ogawa", "A. Muller"))]
    tags = (["VERY_RECENT"], ["PREFERRED_AUTHOR"], ["PERHAPS_AUTHOR"])
    rows = [
        row(rank, each.paper_id, shown=rank == 1, tags=of_paper, semantic_relevance=0.01)
        for rank, (each, of_paper) in enumerate(zip(papers, tags, strict=True), 1)
    ]
    content = ProfileContent.model_validate(
        {"interests": {"primary": ["frogs"]}, "preferred_authors": ["Christopher Potts", "Ana Müller"]}
    )
    page = digest(*papers, rows=rows, threshold=0.03, content=content)
    assert [(line.rank, line.people) for line in page.by_people] == [(2, "Chris Potts"), (3, "perhaps A. Muller")]
    for text in (markdown_page(page), html_page(page), mail_text(page), mail_html(page)):
        after = text.partition("By people you follow")[2]
        assert "part 2" in after and "A. Muller" in after
    seen = [{**each, "tags": [*each["tags"], "CONSIDERED_BEFORE"]} for each in rows]
    assert digest(*papers, rows=seen, threshold=0.03, content=content).by_people == ()
