"""Readers made out of authors: whose papers they are, what they may know of them, and what is still to come."""

from datetime import UTC, datetime, timedelta

from benchmarks.author_readers import author_readers, without_name
from paper_assets.paper import Paper


def paper(number: int, *authors: str) -> Paper:
    return Paper(
        paper_id=f"2603.{number:05d}",
        title=f"Notes, part {number}",
        abstract="A walk.",
        authors=authors,
        published=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number),
    )


def test_the_first_papers_are_the_profile_and_no_later_paper_is_rated() -> None:
    [reader] = author_readers([paper(number, "Ann Lee", "Bo Ek") for number in range(8)], least=6)
    assert [each.paper_id[-1] for each in reader.liked] == ["0", "1"]
    assert max(each.day for each in reader.earlier if each.day) < reader.split  # type: ignore[type-var]
    assert len(reader.earlier) == len(reader.later) == 3


def test_papers_of_two_people_of_one_name_are_not_one_reader() -> None:
    """Two papers are one person's if they share another author, through further papers too."""
    connected = [paper(0, "Wei Li", "Ann"), paper(1, "Wei Li", "Bo"), paper(2, "Wei Li", "Ann", "Bo")]
    connected += [paper(3, "Wei Li", "Bo"), paper(4, "Wei Li", "Bo"), paper(5, "Wei Li", "Ann")]
    other = [paper(number, "Wei Li", "Cy") for number in range(6, 10)]
    [reader] = author_readers([*connected, *other], least=6)
    own = {*reader.liked, *reader.earlier, *reader.later}
    assert own == set(connected)


def test_the_authors_own_name_is_not_among_what_is_known_of_a_paper() -> None:
    found = list(without_name([paper(0, "Ann Lee", "Bo Ek"), paper(1, "Ann Lee")], "Ann Lee"))
    assert [each.authors for each in found] == [("Bo Ek",), ("Unknown",)]
