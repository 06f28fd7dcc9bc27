"""Test the reading of statements: what is wanted, what is not, at which level, and whom to follow."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.text.statements import LONGEST_STATEMENT, read_statement, topic_in

CATEGORIES = {
    "cs.cl": "cs.CL",
    "hep-th": "hep-th",
    "cs.cv": "cs.CV",
    "number theory": "math.NT",
    "algebraic geometry": "math.AG",
}

# text, wanted topics, avoided topics
READ = [
    ("graph transformers", ["graph transformers"], []),
    ("protein folding, not drug design", ["protein folding"], ["drug design"]),
    ("safe control; not robotics; game theory", ["safe control", "game theory"], ["robotics"]),
    ("vision models, not medical imaging, scene graphs", ["vision models", "scene graphs"], ["medical imaging"]),
    ("ocean models, no weather, sea ice or floods", ["ocean models"], ["weather", "sea ice", "floods"]),
    ("parsing except for Latin and Greek", ["parsing"], ["Latin", "Greek"]),
    ("I'm not interested in chess.", [], ["chess"]),
    ("Tori. No papers by Ada Lov.", ["Tori"], ["Ada Lov"]),
    ("Speech coding. I don't want to see speaker papers.", ["Speech coding"], ["speaker papers"]),
    ("Tables and charts. Papers on infographics are not relevant to me.", ["Tables", "charts"], ["infographics"]),
    ("Not only image editing but also video editing", ["image editing", "video editing"], []),
    ("non-smooth optimization, learning without rewards", ["non-smooth optimization", "learning without rewards"], []),
    ("why agents do not cooperate", ["why agents do not cooperate"], []),
    ("no-regret learning; no free lunch theorems", ["no-regret learning", "no free lunch theorems"], []),
    (
        "learning and pruning of decision trees, bandits and active learning",
        ["learning and pruning of decision trees", "bandits", "active learning"],
        [],
    ),
    ("cheap inference (no hardware), caching", ["cheap inference", "caching"], ["hardware"]),
    (
        "in-depth, insightful work on survival models, including frailty models, ideally improving our understanding",
        ["survival models", "frailty models"],
        [],
    ),
    ("I work on music. I read about beat tracking and chord recognition.", ["beat tracking", "chord recognition"], []),
    (
        "Relevant topics:\n- tactile sensing\n- soft grippers (of silicone or\n  textile)\nNot relevant:\n- drones",
        ["tactile sensing", "soft grippers (of silicone or textile)"],
        ["drones"],
    ),
    (
        "1. Better samplers\n   - Relevant: fewer steps, distillation.\n   - Not relevant: uses in art, film or games.",
        ["Better samplers", "fewer steps", "distillation"],
        ["uses in art, film or games"],
    ),
    ("# Interests\nquery plans\njoins\n\n# Avoid\nspreadsheets", ["query plans", "joins"], ["spreadsheets"]),
    ("Top priority: query plans. Second: joins.", ["query plans", "joins"], []),
    ("We follow advances in query planning for\nstream processors.", ["query planning for stream processors"], []),
    ("Spare me the leaderboards. What I'm after is theory of attention.", ["theory of attention"], ["leaderboards"]),
    ("Ich interessiere mich für Robotik, aber nicht für autonomes Fahren.", ["Robotik"], ["autonomes Fahren"]),
    ("推理加速（缓存、量化），不关注多模态。", ["推理加速", "缓存", "量化"], ["多模态"]),
    ("画像生成に興味があります。動画には興味がありません。", ["画像生成"], ["動画"]),
    (
        "Hi Ada,\n\nthanks a lot! I'd like to see papers on tori. Please leave out knots.\n\nBest regards,\nEmil",
        ["tori"],
        ["knots"],
    ),
    ("robots, legged ones above all", ["robots", "legged robots"], []),
    ("tree kernels, but only those with proofs", ["tree kernels", "tree kernels with proofs"], []),
    ("translation of old languages, but not Latin ones", ["translation of old languages"], ["Latin old languages"]),
    ("+ query plans\n+ joins\n- spreadsheets", ["query plans", "joins"], ["spreadsheets"]),
    ("- query plans\n- joins\n  - not for streams", ["query plans", "joins"], ["streams"]),
    ("parsing, except when it is about Latin; joins, unless they are slow", ["parsing", "joins"], ["Latin"]),
    ("In 2019 I received my PhD from Tori Park and now lead a group. I study tree kernels.", ["tree kernels"], []),
    ("Previously I worked in Tori Park. I would be glad to get papers about tree kernels.", ["tree kernels"], []),
    ("Wichtig sind mir auch Retrieval, keine Tabellen und keine Charts.", ["Retrieval"], ["Tabellen", "Charts"]),
    ("Je m'intéresse au self-supervised learning, mais pas à la musique.", ["self-supervised learning"], ["musique"]),
    ("음성 합성에 관심이 있습니다. 음악에는 관심이 없습니다.", ["음성 합성"], ["음악"]),
]  # fmt: skip

# An opinion before or after the topic, in words that no list of phrases has: text (⏎ ends a line), wanted, avoided.
_LINES = Path(__file__).with_name("opinions.tsv").read_text(encoding="utf-8").splitlines()
OPINIONS = [
    (text.replace("⏎", "\n"), wanted.split("; "), avoided.split("; ") if avoided else [])
    for text, wanted, avoided in (line.split("\t") for line in _LINES)
]


@pytest.mark.parametrize(("text", "wanted", "avoided"), [*READ, *OPINIONS])
def test_a_statement_says_what_is_wanted_and_what_is_not(text: str, wanted: list[str], avoided: list[str]) -> None:
    reading = read_statement(text)
    assert (list(reading.wanted), list(reading.avoid)) == (wanted, avoided)


def test_ranks_become_levels_and_less_interesting_topics_are_marked() -> None:
    reading = read_statement("First: kernels. Then: trees, and boosting. A bit: rules. Less interested in surveys.")
    assert (reading.primary, reading.secondary, reading.exploratory) == (
        ("kernels",),
        ("trees", "boosting"),
        ("rules",),
    )
    assert reading.avoid == reading.less == ("surveys",)
    lowered = read_statement(
        "My top priority is tokens; a distant second is scripts. Mostly kernels and, less so, trees; if there is room "
        "also rules, knots (side interest)."
    )
    assert (lowered.primary, lowered.secondary) == (("tokens", "kernels"), ("scripts", "trees"))
    assert lowered.exploratory == ("rules", "knots")


@pytest.mark.parametrize(
    "text",
    [
        "Kernels, and, less so, trees; now and then one on rules",
        "Kernels (high), trees (medium), rules (low)",
        "Tier 1: kernels\nTier 2: trees\nTier 3: rules",
        "First and foremost: kernels. Next: trees. If there is room: rules.",
        "Number one is kernels. Number two is trees. Occasionally rules.",
        "I care most about kernels, a bit less about trees. With a side interest in rules.",
        "My core topic is kernels; secondary interests are trees; side interests are rules.",
    ],
)
def test_a_rank_is_read_however_it_is_written(text: str) -> None:
    reading = read_statement(text)
    levels = [[topic.lower() for topic in level] for level in (reading.primary, reading.secondary, reading.exploratory)]
    assert (levels, reading.avoid) == ([["kernels"], ["trees"], ["rules"]], ())


@pytest.mark.parametrize(
    "text",
    [
        "Tori. I always read what Ada Lov and Emil Ort write.",
        "Everything Ada Lov and Emil Ort publish, and tori.",
        "tori; people I follow: Ada Lov, Emil Ort",
        "Tori. Ada Lov and Emil Ort are the authors I watch.",
        "I never want to miss a paper of Ada Lov or Emil Ort. Topic-wise: tori.",
        "tori, e.g. papers by Ada Lov or Emil Ort",
        "I keep track of Ada Lov and Emil Ort; otherwise tori",
    ],
)
def test_people_to_follow_are_read_from_any_phrase(text: str) -> None:
    reading = read_statement(text)
    assert (reading.authors, [topic.lower() for topic in reading.wanted]) == (("Ada Lov", "Emil Ort"), ["tori"])


def test_names_with_the_family_name_first_stay_in_this_order() -> None:
    assert read_statement("Authors: van der Lov, Ada; Ort, Emil").authors == ("van der Lov, Ada", "Ort, Emil")


@pytest.mark.parametrize(
    ("text", "wanted", "excluded"),
    [
        ("tori in math.AG, not cs.CV", ["math.AG"], ["cs.CV"]),
        ("tori (math.AG), no hep-th", ["math.AG"], ["hep-th"]),
        ("From Algebraic Geometry I want tori", ["math.AG"], []),
        ("Algebraic Geometry papers on tori", ["math.AG"], []),
    ],
)
def test_a_category_leaves_nothing_behind_in_the_topics(text: str, wanted: list[str], excluded: list[str]) -> None:
    reading = read_statement(text, categories=CATEGORIES | {"math.ag": "math.AG", "hep-th": "hep-th"})
    assert (list(reading.categories), list(reading.exclude_categories)) == (wanted, excluded)
    assert (reading.wanted, reading.avoid) == (("tori",), ())


def test_people_are_lifted_out_of_a_sentence_and_of_a_list() -> None:
    reading = read_statement("Sieve methods. Always include papers by Ada van der Lov or Émile Dûbois.")
    assert (reading.authors, reading.wanted) == (("Ada van der Lov", "Émile Dûbois"), ("Sieve methods",))
    for text in (
        "Sieves; everything Ada Lov posts",
        "If Ada Lov publishes something, show it. Sieves",
        "Sieves, authors to follow: Ada Lov",
        "Never miss Ada Lov. Sieves",
        "New work of Ada Lov on sieves is welcome.",
    ):
        reading = read_statement(text)
        assert (reading.authors, [topic.lower() for topic in reading.wanted]) == (("Ada Lov",), ["sieves"]), text
    assert read_statement("topics: tori\nauthors: Ada Lov, Émile Dûbois").authors == ("Ada Lov", "Émile Dûbois")


def test_categories_are_known_by_code_and_by_name() -> None:
    reading = read_statement(
        "cs.CL papers on parsing; modular forms (Number Theory), but nothing from Algebraic Geometry",
        categories=CATEGORIES,
    )
    assert (reading.categories, reading.exclude_categories) == (("cs.CL", "math.NT"), ("math.AG",))
    assert reading.wanted == ("parsing", "modular forms")
    assert read_statement("exclude: cs.CV", categories=CATEGORIES).exclude_categories == ("cs.CV",)
    for text in (
        "hep-th but not cs.CV, tensor networks",
        "Only hep-th, without cs.CV: tensor networks",
        "hep-th: tensor networks. Exclude cs.CV.",
        "My category is hep-th. I read about tensor networks. No cs.CV papers.",
    ):
        reading = read_statement(text, categories=CATEGORIES)
        assert (reading.categories, reading.exclude_categories) == (("hep-th",), ("cs.CV",)), text
        assert (reading.wanted, reading.avoid) == (("tensor networks",), ()), text
    sections = read_statement("Number Theory and Algebraic Geometry sections; modular forms", categories=CATEGORIES)
    assert (sections.categories, sections.wanted) == (("math.NT", "math.AG"), ("modular forms",))


def test_a_statement_that_only_excludes_says_that_nothing_is_wanted() -> None:
    assert any("name at least one topic" in note for note in read_statement("not interested in robotics").notes)


def test_the_language_of_a_statement_is_recognised() -> None:
    texts = {
        "ja": "音声認識と音声合成",
        "zh": "我关注图神经网络",
        "ko": "음성 인식",
        "de": "Quantisierung und keine Bilder, bitte über Netze",
    }
    assert {code: read_statement(text).language for code, text in texts.items()} == {code: code for code in texts}
    assert read_statement("SLAM, visual odometry, event cameras, loop closure, bundle adjustment").language is None


@given(st.text(alphabet=st.sampled_from("ab.,;:()- \nnotbutI'mAé不関심1*"), max_size=300) | st.text(max_size=200))
def test_any_text_is_read_without_an_error_and_always_alike(text: str) -> None:
    assert read_statement(text) == read_statement(text)


def test_a_text_beyond_the_limit_is_cut_with_a_note() -> None:
    reading = read_statement("trees, not forests; " * (LONGEST_STATEMENT // 10))
    assert reading.wanted[0] == "trees"
    assert any("characters were read" in note for note in reading.notes)


@pytest.mark.shared_data
def test_recorded_statements_lose_no_exclusion_and_follow_every_author(shared_data: Path) -> None:
    lines = (shared_data / "statements" / "statements.jsonl").read_text(encoding="utf-8").splitlines()
    for statement in map(json.loads, lines):
        reading = read_statement(statement["text"])
        assert list(reading.authors) == statement["authors"], statement["id"]
        assert bool(reading.avoid) == bool(statement["unwanted"]), statement["id"]
        assert (reading.language or "en") == statement.get("language", "en"), statement["id"]


def test_the_name_of_a_category_is_one_topic() -> None:
    names = {"cryptography and security": "cs.CR"}
    reading = read_statement("elliptic curves; nothing from Cryptography and Security", categories=names)
    assert (reading.avoid, reading.exclude_categories) == (("Cryptography and Security",), ("cs.CR",))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Effizientes Training großer Sprachmodelle", "de"),
        ("Schrödinger bridges for sampling", None),
        ("de novo design", None),
    ],
)
def test_a_short_text_in_another_language_is_told_from_an_english_one_with_names(text: str, language: str) -> None:
    assert read_statement(text).language == language


@pytest.mark.parametrize(
    "introduction",
    [
        "I work on",
        "I'm also interested in",
        "we are mainly working with",
        "I would like to read more about",
        "I’m looking for recent papers on",
        "Anything new on",
        "new work about",
        "papers that",
        "My thesis is on",
        "our lab works on",
        "keen on",
        "interested  in",
        "Please keep me posted on",
        "Show me recent papers about",
        "What's new in",
        "I care about",
        "I want to know how people are trying to",
    ],
)
def test_the_words_that_introduce_an_interest_are_left_out(introduction: str) -> None:
    assert topic_in(f"{introduction} graph neural networks") == "graph neural networks"


@pytest.mark.parametrize(
    "interest",
    [
        "research agents",
        "news recommendation",
        "literature review automation",
        "papers with code",
        "work stealing",
        "study design",
        "people counting",
        "how agents plan",
        "needle-in-a-haystack tests",
        "new physics",
        "likelihood",
        "papers",
    ],
)
def test_a_topic_stays_as_it_is_and_nothing_becomes_empty(interest: str) -> None:
    assert topic_in(interest) == interest


@pytest.mark.parametrize(
    "part",
    ["I want to ", "papers on ", "any new ", "my lab works ", "i very ", "show me ", "how people are trying to "],
)
def test_a_text_of_nothing_but_introductions_ends(part: str) -> None:
    assert topic_in(part * 1_000).strip()


@pytest.mark.parametrize(
    "topic",
    [
        "skip connections in residual networks",
        "skip-gram embeddings",
        "avoiding catastrophic forgetting",
        "removing bias from embeddings",
        "less data-hungry models",
        "irrelevant feature elimination",
        "learning to say no",
        "no-code tools",
        "leave-one-out cross-validation",
        "out of domain generalization",
        "hidden Markov models",
        "does scaling help",
    ],
)
def test_a_topic_that_begins_like_an_exclusion_is_wanted(topic: str) -> None:
    assert (read_statement(topic).wanted, read_statement(topic).avoid) == ((topic,), ())
