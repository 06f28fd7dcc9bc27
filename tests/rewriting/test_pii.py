"""Phones and mail addresses are masked; other numbers of papers are unchanged (B2)."""

import gzip
import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.rewriting.pii import find_pii, mask_pii

KOREAN = [
    "010-1234-5678",
    "010.1234.5678",
    "010 1234 5678",
    "010–1234–5678",
    "０１０－１２３４－５６７８",
    "01012345678",
    "02-123-4567",
    "(02) 123-4567",
    "02)123-4567",
    "031-123-4567",
    "070-1234-5678",
    "080-123-4567",
    "0505-123-4567",
    "+82 10-1234-5678",
    "+82-10-1234-5678",
    "+82 (0)10 1234 5678",
    "+82 2 123 4567",
    "+821012345678",
    "010 - 1234 - 5678",
    "010‑1234‑5678",
    "0082-10-1234-5678",
    "0082 10 1234 5678",
]
INTERNATIONAL = [
    "(212) 555-0199",
    "212-555-0199",
    "212.555.0199",
    "(415)555-2671",
    "1-800-356-9377",
    "+1 212 555 0199",
    "+1-212-555-0199",
    "+1.212.555.0199",
    "+1 (415) 555-2671",
    "+14155552671",
    "+44 20 7031 3000",
    "+44 (0)20 7031 3000",
    "+49 30 303986300",
    "+33 1 42 68 53 00",
    "+81 3-6384-9000",
    "+86 10 6250 3000",
    "+61 2 9374 4000",
    "+358 9 4245 1234",
]
ONLY_WITH_A_WORD = ["전화 1588-1234", "대표번호: 1588-1234", "phone 2125550199", "Tel: 6502530000", "Fax: 02-123-4567"]
MAIL = [
    "ada.moreau@example.edu",
    "ada+papers@cs.example.ac.kr",
    "josé@example.com",
    "ADA@EXAMPLE.EDU",
    "{ada, bo.li}@example.org",
    "ada [at] example [dot] edu",
    "ada(at)example.com",
    "김@example.kr",
    "김.보람@example.ac.kr",
    "ada＠example.edu",
    "ada＠ｅｘａｍｐｌｅ．ｅｄｕ",
    "ada@bücher.example.de",
    "보람@한국.한국",
    "ivan@пример.рф",
]
NO_PII = [
    # identifiers
    "2501.12345",
    "arXiv:2501.12345v2",
    "hep-th/9901001",
    "math.GT/0309136v1",
    "cond-mat/0211034",
    "10.1145/3292500.3330701",
    "doi:10.1016/j.cell.2020.02.058",
    "https://doi.org/10.1000/212-555-0199",
    "https://example.org/files/010-1234-5678",
    "0000-0002-1825-0097",
    "https://orcid.org/0000-0001-5109-3700",
    "ISBN 978-3-16-148410-0",
    "ISBN 0-306-40615-2",
    "978-3-16-148410-0",
    "ISBN 9783161484100",
    "ISSN 2049-3630",
    "NRF-2019-123-4567",
    "IIS-2125550199",
    "under grant 415-555-2671",
    "NSF award 212 555 0199",
    "supported by NRF (02-123-4567)",
    "Project No. 031-123-4567",
    "650 253 0000 parameters",
    "212 555 0199 training tokens",
    "PMID 31452104",
    # dates
    "2024-01-15",
    "2024-01-15T10:20:30",
    "2024.01.15",
    "2024. 1. 15.",
    "15.01.2024",
    "01/15/2024",
    "12-16-2024",
    "20240115",
    "2019-2020, 2021-2022",
    "2020 2021 2022 2023",
    # pages and volumes
    "pp. 1484-1509",
    "pages 212-250 2019",
    "26(5), 1484-1509",
    "26(5):1484–1509",
    "1588-1599",
    "123-130",
    "Vol. 12, No. 3, 1588–1599",
    # versions and addresses
    "version 3.11.1234",
    "v212.555.0199",
    "CUDA 12.4.1",
    "10.15.7",
    "192.168.10.12",
    "release 2024.10.1234",
    # arithmetic and measurements
    "x = 212-555-0199",
    "212-555-0199 = -542",
    "$212-555-0199 \\leq n$",
    "\\(a_{010} - 1234 - 5678\\)",
    "3.141592653589",
    "0.123 0.456 0.7890",
    "1,234,567,890",
    "6,705,991,234 parameters",
    "1234567890",
    "1 234 567 890",
    "1e-10",
    "10^{12}",
    # widths of layers
    "256-512-1024 units",
    "784-512-2560",
    "512 256 1280",
    "a 250-500-1000 network",
    "128-256-512-1024",
    # what has an @
    "recall@10.Then we",
    "mAP@0.5",
    "P@5",
    "hits@k",
    "git@github.com:ada/papers",
    "user@host",
]


@pytest.mark.parametrize("phone", KOREAN + INTERNATIONAL)
def test_a_phone_number_is_masked_at_any_position(phone: str) -> None:
    for sentence in ("{}", "Write or call {} any day.", "연락처는 {}입니다.", "({}), Seoul; see arXiv:2501.12345"):
        if sentence.startswith("(") and phone.startswith("02)"):
            continue  # to which number that bracket belongs is ambiguous
        assert mask_pii(sentence.format(phone)) == sentence.format("***")


@pytest.mark.parametrize("text", ONLY_WITH_A_WORD)
def test_an_ambiguous_number_is_a_phone_number_after_a_word_such_as_phone(text: str) -> None:
    word, _, number = text.rpartition(" ")
    assert mask_pii(text) == f"{word} ***"
    if not number.startswith("02"):
        assert mask_pii(f"In total {number} of them.") == f"In total {number} of them."


@pytest.mark.parametrize("mail", MAIL)
def test_a_mail_address_is_masked_and_what_follows_it_stays(mail: str) -> None:
    assert mask_pii(f"Correspondence: {mail}.") == "Correspondence: ***."
    assert mask_pii(f"이메일 {mail}로 연락") == "이메일 ***로 연락"
    assert mask_pii(f"See {mail}.We find") == "See ***.We find"
    assert mask_pii(f"{mail}: she replied") == "***: she replied"


def test_digits_that_could_be_widths_are_a_phone_number_after_a_word_or_by_their_form() -> None:
    for text in ("Call 256-512-1024.", "Call +1 256-512-1024.", "Call (256) 512-1024.", "Call 1-256-512-1024."):
        assert mask_pii(text) == "Call ***."
    for text in ("{}, Seoul", "Write to {}"):
        for phone in ("+1 256-512-1024", "(256) 512-1024", "1-256-512-1024"):
            assert mask_pii(text.format(phone)) == text.format("***")


@pytest.mark.parametrize("text", NO_PII)
def test_what_only_looks_like_it_is_not_touched(text: str) -> None:
    for sentence in ("{}", "We refer to {} here.", "({})", "see {}, and then", "값은 {}이다."):
        assert mask_pii(sentence.format(text)) == sentence.format(text)


digits = st.integers(0, 9).map(str)


def of(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True).filter(str.isascii)


@given(
    st.one_of(
        of(r"[0-2][0-9](0[1-9]|1[0-2])\.[0-9]{4,5}(v[1-9])?"),
        of(r"(hep-th|cs|math|cond-mat)/[0-9]{7}"),
        of(r"10\.[0-9]{4,5}/[0-9]{7}\.[0-9]{7}"),
        of(r"[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]"),
        of(r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])"),
        of(r"pp\. [0-9]{2,4}[-–][0-9]{2,4}"),
        of(r"v?[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,3}"),
        of(r"[0-9]{1,3}(\.[0-9]{1,3}){3}"),
        of(r"[1-9][0-9]{6,11}"),
    ),
    st.sampled_from(["{}", "as in {}.", "[{}]", "{} and more", "값 {}은"]),
)
def test_no_identifier_date_range_or_version_is_taken_for_a_phone(text: str, sentence: str) -> None:
    assert mask_pii(sentence.format(text)) == sentence.format(text)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*KOREAN, *INTERNATIONAL, *MAIL, *NO_PII, *ONLY_WITH_A_WORD]),
            st.text("0123456789 -.()+@*=ab", max_size=12),
        ),
        max_size=6,
    ).map(" ".join)
)
def test_masking_twice_is_masking_once_and_leaves_nothing_to_find(text: str) -> None:
    masked = mask_pii(text)
    assert mask_pii(masked) == masked
    assert find_pii(masked) == []
    assert bool(find_pii(text)) == (masked != text)


def test_several_kinds_in_one_text_are_distinguished_by_their_position() -> None:
    text = "ada@example.edu, 010-1234-5678 (see 2501.12345)"
    assert [(pii.kind, text[pii.start : pii.end]) for pii in find_pii(text)] == [
        ("mail", "ada@example.edu"),
        ("phone", "010-1234-5678"),
    ]
    assert mask_pii(text) == "***, *** (see 2501.12345)"


def test_no_phone_is_seen_in_the_papers_of_the_example() -> None:
    lines = (files("paper_assets.setup") / "example_papers.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [f"{one['title']} {one['abstract']} {one.get('comment') or ''}" for one in map(json.loads, lines)]
    texts += ["12+8 pages, 7 figures, 3 tables; hidden layers of 512-256-128 units; MSC 68T50 (2020); v2: eq. (3.14)"]
    texts += ["J. Inv. 12 (2019) 345-367, https://doi.org/10.1000/0123-4567.2019.1234567, arXiv:2501.12345v2"]
    assert [text for text in texts if any(pii.kind == "phone" for pii in find_pii(text))] == []


@pytest.mark.shared_data
def test_no_phone_is_seen_in_real_papers(shared_data: Path) -> None:
    with gzip.open(shared_data / "arxiv_papers" / "papers.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for at, line in enumerate(lines) if at % 10 == 0]
    texts = [f"{record['title']} {record['abstract']} {record.get('comments') or ''}" for record in records]
    assert len(texts) > 500
    assert [text for text in texts if any(pii.kind == "phone" for pii in find_pii(text))] == []
