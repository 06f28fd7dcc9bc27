"""Test texts from arXiv's HTML and LaTeX: sections and formulae as written, and hostile archives."""

import gzip
import io
import tarfile
import zlib
from pathlib import Path

import pytest

from paper_assets.errors import PdfFetchFailed
from paper_assets.sources import arxiv_full_text as latex
from paper_assets.sources.arxiv_full_text import html_text, latex_text

LONG = "Kelp grows where the tide is slow, and slow tides are rare on this coast. " * 8

PAGE = f"""<!DOCTYPE html><html><head><title>x</title><script>alert(1)</script></head><body>
<nav class="ltx_TOC"><a href="#S1">1 Introduction</a></nav>
<article class="ltx_document">
<h1 class="ltx_title ltx_title_document">Kelp <em>and</em> tides</h1>
<div class="ltx_abstract"><h6 class="ltx_title">Abstract</h6><p class="ltx_p">We look at kelp.</p></div>
<section class="ltx_section"><h2 class="ltx_title"><span class="ltx_tag">1 </span>Introduction</h2>
<p class="ltx_p">The energy is <math alttext="E=mc^{{2}}" display="inline"><semantics><mi>E</mi></semantics></math>, as
ever<span class="ltx_ERROR">\\undefined</span>.</p>
<table class="ltx_equation"><tr><td><math display="block"><semantics><mi>a</mi>
<annotation encoding="application/x-tex">\\int_0^1 x\\,dx</annotation></semantics></math></td></tr></table>
<ul><li><p>first point</p></li><li>second &lt;b&gt; point</li></ul>
<table class="ltx_tabular"><tr><th>name</th><td>12</td></tr><tr><th>other</th><td>3</td></tr></table>
<figure><img src="x.png" alt="no"><figcaption>Figure 1: a tide\u202e.</figcaption></figure>
<p>{LONG}</p></section></article>
<footer>Report an issue</footer></body></html>"""


def test_sections_lists_tables_and_formulae_of_a_page_are_kept_and_what_is_round_it_is_not() -> None:
    text = html_text(PAGE.encode(), name="the HTML")
    parts = text.split("\n\n")
    assert parts[:4] == ["# Kelp and tides", "###### Abstract", "We look at kelp.", "## 1 Introduction"]
    assert "The energy is $E=mc^{2}$, as ever." in parts
    assert "$$\\int_0^1 x\\,dx$$" in parts
    assert {"name | 12", "other | 3", "Figure 1: a tide.", "second <b> point"} <= {
        part.removeprefix("- ") for part in parts
    }
    assert not any(word in text for word in ("alert", "Report an issue", "undefined"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"<html><body><p>Conversion failed</p></body></html>",
        b"<html><body><article>too little</article></body></html>",
        b"<article>" + b"<div>" * 200_000,
    ],
    ids=["empty", "bytes", "no article", "short", "deep"],
)
def test_a_page_that_is_not_of_a_paper_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(PdfFetchFailed, match=r"^the HTML "):
        html_text(content, name="the HTML")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"<p>{LONG}</p>" + "<div>" * 300 + f"<p>{LONG}</p>", "has elements nested more than 256 deep; not read"),
        (f"<p>{'a b c d ' * 1_300_000}</p>", "has a single text of more than 10 MB; not read"),
    ],
    ids=["deep", "long"],
)
def test_a_page_beyond_a_limit_is_refused_with_the_limit_and_never_kept_in_part(body: str, reason: str) -> None:
    with pytest.raises(PdfFetchFailed, match=rf"^the HTML {reason}$"):
        html_text(f"<html><body><article>{body}</article></body></html>".encode(), name="the HTML")


MAIN = r"""\documentclass{article} % \begin{document} in a comment
\title[Kelp]{Kelp and tides}
\begin{document}\maketitle
\begin{abstract}We look at \emph{kelp}.\end{abstract}
\input{parts/intro}
\section*{Methods} \label{sec:m}
We take 10\% of it: % not this
\begin{equation} \int_0^1 x\,dx = \frac{1}{2} \end{equation}
\end{document}
"""


def packed(files: dict[str, str], *others: tarfile.TarInfo) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
        for entry in others:
            archive.addfile(entry)
    return gzip.compress(stream.getvalue())


def read(content: bytes) -> str:
    return latex_text(content, name="the source")


def test_sections_and_formulae_of_a_source_are_kept_and_its_files_put_together() -> None:
    text = read(
        packed({"ms.tex": MAIN, "parts/intro.tex": f"\\section{{Introduction}}\n{LONG} $E=mc^2$", "fig.png": "x"})
    )
    parts = text.split("\n\n")
    assert parts[:4] == ["# Kelp and tides", "## Abstract", "We look at kelp.", "## Introduction"]
    assert "$E=mc^2$" in text and r"\begin{equation} \int_0^1 x\,dx = \frac{1}{2} \end{equation}" in text
    assert r"10\% of it:" in text and "not this" not in text and "\\label" not in text


def test_a_source_of_one_file_is_read_packed_or_not_in_utf8_or_latin1() -> None:
    alone = MAIN.replace(r"\input{parts/intro}", f"Müller. {LONG}")
    for content in (gzip.compress(alone.encode()), alone.encode(), gzip.compress(alone.encode("latin-1"))):
        assert "Müller" in read(content)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def test_links_devices_and_paths_out_of_the_archive_give_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.tex"
    secret.write_text("the secret of this machine")
    hostile = MAIN.replace(
        r"\input{parts/intro}",
        rf"\input{{{secret}}} \input{{../../secret}} \input{{passwd}} \input{{hard}} "
        rf"\import{{../..}}{{secret}} \input{{ms}} {LONG}",
    )
    text = read(
        packed(
            {"ms.tex": hostile, "../secret.tex": "the secret of this machine", "/etc/x.tex": "secret"},
            link("passwd.tex", str(secret)),
            link("hard.tex", "../secret.tex", tarfile.LNKTYPE),
            link("device.tex", "", tarfile.CHRTYPE),
        )
    )
    assert "secret of" not in text and "root:" not in text and "Kelp grows" in text


def test_bombs_are_refused_before_they_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latex, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(latex, "_MOST_FILES", 20)
    with pytest.raises(PdfFetchFailed, match="more than 1 MB unpacked"):
        read(gzip.compress(bytes(50_000_000)))
    with pytest.raises(PdfFetchFailed, match="more than 20 files"):
        read(packed({f"{number}.tex": "" for number in range(30)}))
    monkeypatch.setattr(latex, "_MOST_TEXT", 10_000)
    doubling = {f"f{level}.tex": f"{'x ' * 50}\\input{{f{level + 1}}}" * 20 for level in range(8)}
    body = MAIN.replace(r"\input{parts/intro}", f"{LONG}\\input{{f0}}")
    assert len(read(packed({"ms.tex": body, **doubling}))) < 20_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"%PDF-1.7 only a PDF was submitted",
        packed({"readme.txt": "no TeX"}),
        packed({"ms.tex": MAIN})[:60],
        zlib.compress(MAIN.encode()),
        gzip.compress(b"\0" * 3_000),
        gzip.compress(MAIN.replace(r"\input{parts/intro}", "").encode()),
    ],
    ids=["empty", "pdf", "no tex", "cut off", "zlib", "zeros", "short"],
)
def test_an_archive_that_is_not_the_source_of_a_paper_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(PdfFetchFailed, match=r"^the source "):
        read(content)


def test_a_page_that_takes_the_parser_minutes_is_given_up_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latex, "MOST_SECONDS", 4)
    attributes = " ".join(f"a{number}=1" for number in range(300_000))  # the parser compares each with all
    page = f"<article><p {attributes}>{'frogs ' * 200}</p></article>".encode()
    with pytest.raises(PdfFetchFailed, match="the page needs more memory or time than a paper does"):
        latex.written_text("html", page, name="the page")
