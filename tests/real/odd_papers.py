"""Invent papers whose texts break parsers: TeX traps, control characters, scripts, markup, texts beyond reason."""

import random
import re
from collections.abc import Iterator
from typing import Any

from paper_assets.paper import Paper, paper_from_mapping
from tests.invented_papers import MONDAY

# TeX on which parsers of TeX raise, loop or run out of stack.
TEX_TRAPS = (
    r"We cite $\href{https://example.org}{x}$ here",
    r"$\colorbox{red}{x}$ and $\fcolorbox{red}{blue}{x}$",
    r"$\footnote{x}$ $\title{x}$ $\author{x}$ $\date{x}$",
    r"\footnote{x} \title{x} \author{x} \date{x} \input{x} \verb",
    r"$\input{x}$ $\include{x}$ $\include{x}$ $\includegraphics{x}$",
    r"$\verb$",
    r"$x \verb",
    r"text \verb",
    r"$\exercise{x}$ $\begin{exercise}a\end{exercise}$",
    r"$\begin{array}a\end{array}$",
    r"$\begin{array}{c}a\end{array}$ $\begin{matrix}$ $\end{matrix}$",
    r"$\frac{1}$ $\frac$ $\sqrt[$ $x^$ $x_$ $^$ $_$ $\left( x$ $\right)$",
    r"$$ $ $$$ $$$$ \( \) \[ \] \( x \[ y \) \]",
    r"\begin{document}$x$\end{document} \newcommand{\x}{\x} $\def\x{\x}\x$",
    r"$\text{$x$}$ $\mbox{\(y\)}$ \'{} \'{\i} \v{} \c{c} \H o {\o}",
    r"costs from $5 to $6, not \$7, 100\% & #1 ~ {a} \{b\}",
    r"$\unknowncommand{x}$ $\mathbb$ $\operatorname$ $\operatorname{}$",
    r"\textbf{\textit{\emph{a}}} {\bf b} {\it c \url{https://example.org/a_b%20c} \href{x}{y}",
    r"$\require{html} \href{javascript:alert(1)}{x} \style{color:red}{y} \class{a}{b}$",
    "$" + "{" * 300 + "a" + "}" * 300 + "$",
    "$" + r"\frac{1}{" * 120 + "x" + "}" * 120 + "$",
    "$" + r"\sqrt{" * 1_500 + "x" + "}" * 1_500 + "$",
    "{" * 3_000 + r"\'e" + "}" * 3_000,
    "$x" + "^{x" * 60 + "}" * 60 + "$",
    "$x" + "'" * 3_000 + "$",
)
MARKUP_TRAPS = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><!-- --></main></article>",
    "&lt;b&gt; &#60; &amp;amp; &nosuch; <b>bold</b> <math><mi>x</mi></math>",
    "`code` ```fence [link](javascript:alert(1)) ![x](https://example.org/x.png) **b** | a | b |",
    "{{ 7 * 7 }} {% include 'x' %} {# comment #} %s %(x)s {0} {name} $name ${name}",
    "@article{x, title={{y}}} \n TY  - JOUR\nER  - \n",
    "quote \" apostrophe ' backslash \\ percent % at @here <!channel>",
)
UNICODE_TRAPS = (
    "a\x00b\x07c\x1b[31md\x85e\x9bf\u2028g\u2029h",
    "\ufeff\ufffe\uffff\ud800\udfff\U0010ffff\ue000\ue001\ue002",
    "\ue0000\ue001 $x$ \ue00099\ue001",
    "\u202eright to left\u202c \u2066isolate\u2069 \u200f\u200e",
    "מודלים של שפה גדולים",
    "نماذج اللغة الكبيرة",
    "大規模言語モデル 대규모 언어 모델 大语言模型",
    "แบบจำลองภาษาขนาดใหญ่",
    "z" + "\u0301\u0335\u0489" * 400,
    "👩‍👩‍👧‍👦🏳️‍🌈🇺🇳 e\u0301 ﬁ ﷺ",
    "\U000e0041\U000e0042 tags \u00ad\u200b\u2060",
    "İıſßẞΐ ǅ ﬃ",
    "\r\n\t \x0b\x0c  ",
    "",
    " ",
    ".",
)
# Texts far beyond what arXiv allows, each built to make a careless parser slow.
HUGE = (
    "$a" * 125_000,
    "$'a'" * 30_000,
    r"$\verb|" + "x" * 100_000,
    "{" * 60_000,
    "\\" * 75_001,
    "$" * 75_001,
    r"\textbf{" * 20_000,
    r"\'" * 40_000,
    "`" * 75_000,
    "(" * 30_000 + "]" * 30_000,
    "word " * 60_000,
    "x" * 250_000,
    "A. " * 60_000,
    "\u0301" * 75_000,
    "<" * 75_000,
    # As long as a text may be that is searched for TeX.
    "$" + r"\sqrt{" * 8_000,
    r"\(" * 24_000,
    r"\[" * 24_000,
    r"\( x " * 9_000,
    "$1" * 24_000,
    "$a b$1" * 8_000,
    r"$\$" * 16_000,
    "$x$" * 16_000,
    ("$" + r"\frac{a_1}{b^2}" * 120 + "$ ") * 25,
    ("$" + "x'" * 900 + "$ ") * 25,
    ("$" + "x_" * 900 + "y$ ") * 25,
    ("$" + "a" * 1_900 + "$ ") * 25,
    ("$" + r"\left(" * 300 + "$ ") * 25,
    ("$" + r"\begin{array}{c}" * 100 + "$ ") * 25,
    ("$" + "&" * 1_900 + "$ ") * 25,
    r"\textbf{" * 6_000,
    r"\'" * 24_000,
    r"\href{" * 8_000,
    "{\\bf " * 9_000,
)
TRAPS = TEX_TRAPS + MARKUP_TRAPS + UNICODE_TRAPS


# An import refuses NUL and half surrogate pairs.
_REFUSED = re.compile("[\0\ud800-\udfff]")


def paper_saying(text: str, number: int) -> Paper:
    """Read a paper that has the text in every field, as an import reads it."""
    text = _REFUSED.sub("", text)
    return _read(
        number,
        title=f"x{text}",
        abstract=f"{text}. We propose {text}\n\n{text}",
        authors=(text, "Ada Moreau", text),
        categories=(text, "cs.CL"),
        comment=text,
        doi=text,
        journal_ref=text,
        pdf_url=text,
        github_url=f"https://example.org/{text}",
        affiliations=(text,),
    )


def _read(number: int, **fields: Any) -> Paper:
    return paper_from_mapping({"paper_id": f"2601.{number:05d}", "published": f"{MONDAY}", **fields})


def odd_papers() -> Iterator[Paper]:
    """Return a paper for each trap, and one with neither authors nor date nor category."""
    for number, text in enumerate(TRAPS, 1):
        yield paper_saying(text, number)
    yield _read(90_000, title="x", abstract="", authors=(), published=None)


def huge_papers() -> Iterator[Paper]:
    """Return papers with texts beyond reason in title and abstract."""
    for number, text in enumerate(HUGE, 1):
        yield _read(80_000 + number, title=text, abstract=text, authors=(text[:5_000],) * 3, comment=text)


def generated_text(dice: random.Random) -> str:
    """Return a text of TeX, markup and Unicode pieces in random order, some of them cut."""
    pieces = []
    for _ in range(dice.randrange(1, 12)):
        piece = dice.choice(TRAPS)[:400] if dice.random() < 0.5 else dice.choice(_PIECES)
        if piece and dice.random() < 0.3:
            piece = piece[dice.randrange(len(piece)) :]
        pieces.append(piece)
    return dice.choice(("", " ", "$")).join(pieces)


_PIECES = (
    "$", "$$", "\\", "{", "}", "^", "_", "&", "#", "%", "~", r"\(", r"\)", r"\[", r"\]", r"\frac", r"\sqrt", r"\left",
    r"\right", r"\begin{", r"\end{", "array}", "{cc}", r"\text{", r"\mathbf", r"\sum_", r"\alpha", r"\hat", r"\'",
    "x", "1", " ", "We propose", ". ", "<", ">", '"', "'", "\u0301", "\u202e", "\x07", "é", "語", "🙂", r"\v",
)  # fmt: skip
