"""Test finding the repository of a paper, in the comment and then in the abstract (S5)."""

import pytest

from paper_assets.sources.paper_fields import code_url, project_page

REPOSITORY = "https://github.com/some-lab/tool_box"


@pytest.mark.parametrize(
    "text",
    [
        "Code: https://github.com/some-lab/tool_box",
        "Code: http://www.github.com/some-lab/tool_box.",
        "see github.com/some-lab/tool_box, and more",
        r"\url{https://github.com/some-lab/tool\_box}",
        r"\href{https://github.com/some-lab/tool_box}{here}.",
        r"\href{https://github.com/some-lab/tool_box}{https://github.com/some-lab/tool_box}.",
        r"$\href{https://github.com/some-lab/tool{\_}box}{here}$",
        "[repo](https://github.com/some-lab/tool_box).",
        "(https://github.com/some-lab/tool_box).",
        "https://github.com/some-lab/tool_box.git.",
        "https://github.com/some-lab/tool_box/tree/main/part#readme",
        "https://GitHub.com/some-lab/tool_box/",
        "at:https://github.com/some-lab/tool_box;",
        "clone git@github.com:some-lab/tool_box.git",
        '<a href="https://github.com/some-lab/tool_box">this</a>',
    ],
)
def test_every_spelling_of_a_url_gives_the_same_repository(text):
    assert code_url(text, None) == REPOSITORY
    assert code_url(None, text) == REPOSITORY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://gitlab.com/group/sub/project/-/tree/main", "https://gitlab.com/group/sub/project"),
        ("huggingface.co/lab/model-7b.", "https://huggingface.co/lab/model-7b"),
        ("https://huggingface.co/spaces/lab/demo)", "https://huggingface.co/spaces/lab/demo"),
        ("https://github.com/lab/name.v2.1.", "https://github.com/lab/name.v2.1"),
    ],
)
def test_other_hosts_and_names_with_dots(text, expected):
    assert code_url(text, None) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com",
        "https://github.com/some-lab",
        "https://github.com/orgs/some-lab",
        "https://github.com/[your-repo-link]",
        "https://some-lab.github.io/tool",
        "https://notgithub.com/some-lab/tool",
        "https://gitlab.university.example/some-lab/tool",
        "https://huggingface.co/collections/lab/papers",
        "https://huggingface.co/lab",
        "https://huggingface.co/datasets/lab/set",
        "our code is on GitHub",
        "",
    ],
)
def test_other_urls_are_not_repositories(text):
    assert code_url(text, text) is None


def test_the_comment_goes_before_the_abstract():
    assert code_url("github.com/a/first", "github.com/a/second") == "https://github.com/a/first"


def test_code_goes_before_a_data_set_in_one_text():
    text = "Data: huggingface.co/datasets/a/set, code: github.com/a/code"
    assert code_url(None, text) == "https://github.com/a/code"


def test_links_in_real_papers_agree_with_those_found_by_others(shared_data):
    import gzip
    import json

    with gzip.open(shared_data / "arxiv_papers" / "papers.jsonl.gz") as stream:
        papers = [paper for paper in map(json.loads, stream) if paper["code_url"]]
    ours = [code_url(paper["comment"], paper["abstract"]) for paper in papers]
    assert len(papers) == 658
    # Five data sets, two collections, two bare accounts, one blank to fill in.
    assert sum(found is None for found in ours) == 10
    theirs = [paper["code_url"] for paper in papers]
    assert sum(found == url for found, url in zip(ours, theirs, strict=True) if "/datasets/" not in url) >= 591


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://anonymous.4open.science/r/tool-16FE/.", "https://anonymous.4open.science/r/tool-16FE"),
        (r"\href{https://anonymous.4open.science/r/Tool/}{Anonymous code}", "https://anonymous.4open.science/r/Tool"),
        ("anonymous.4open.science/repository/tool/README.md", "https://anonymous.4open.science/r/tool"),
    ],
)
def test_code_under_review_at_4open_science_is_code(text, expected):
    assert code_url(text, None) == expected


def test_a_data_set_or_an_anonymous_web_page_is_not_code():
    assert code_url("Data: https://huggingface.co/datasets/lab/set", "https://anonymous.4open.science/w/page/.") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Project page: https://some-lab.github.io/tool/.", "https://some-lab.github.io/tool"),
        ("see some-lab.github.io", "https://some-lab.github.io"),
        (r"\url{https://Some-Lab.github.io/my\_tool}", "https://Some-Lab.github.io/my_tool"),
        (
            "Our project website is available at: http://tool.some-lab.example/page.",
            "https://tool.some-lab.example/page",
        ),
        ("Project: https://some-lab.example/tool", "https://some-lab.example/tool"),
        ("PROJECT PAGE (https://some-lab.example)", "https://some-lab.example"),
        ("https://sites.google.com/view/tool/home", "https://sites.google.com/view/tool/home"),
        ("https://anonymous.4open.science/w/tool/.", "https://anonymous.4open.science/w/tool"),
    ],
)
def test_a_project_page_is_found(text, expected):
    assert project_page(text, None) == project_page(None, text) == expected
    assert code_url(text, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "The project is described in https://doi.org/10.1000/1. Page 3.",
        "Project page: https://github.com/some-lab/tool",
        "We project the data. See https://some-lab.example/data",
        "a projection; https://some-lab.example",
        "The project page is coming soon.",
        "https://github.io",
        "",
        None,
    ],
)
def test_other_urls_are_not_project_pages(text):
    assert project_page(text, text) is None


def test_all_addresses_on_github_io_in_real_papers_are_project_pages(shared_data):
    import gzip
    import json

    with gzip.open(shared_data / "arxiv_papers" / "papers.jsonl.gz") as stream:
        papers = [(paper["comment"] or "", paper["abstract"]) for paper in map(json.loads, stream)]
    named = [texts for texts in papers if ".github.io" in "".join(texts).lower()]
    assert all(project_page(*texts) for texts in named)
    assert sum(project_page(*texts) is not None for texts in papers) < 1.1 * len(named)
