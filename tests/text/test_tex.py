"""TeX of titles and abstracts is read; what only looks like it keeps its letters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.text.tex import html_with_mathml, readable


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"Ponds $\neq$ Lakes", "Ponds ≠ Lakes"),
        ("Frog$^2$-Net", "Frog²-Net"),
        (r"F$^{\rm 3}$ and F$^\textbf{2}$", "F³ and F²"),
        (r"$\ell_1$-regularised ponds", "ℓ₁-regularised ponds"),
        (r"$V_{0.5}$ and $T^{-1/4}$", "V_(0.5) and T^(-1/4)"),
        (r"a $360^\circ$ view, $40\times$ faster", "a 360° view, 40× faster"),
        (r"\texttt{PondBreak}, \emph{loud} \& wet", "PondBreak, loud & wet"),
        (r"\$OneMillion-Bench", "$OneMillion-Bench"),
        (r"$\|x\|_2$ and $\arg\max_x f(x)$", "‖x‖₂ and arg maxₓ f(x)"),
        (r"in $n\log n$ time, $\tilde{O}(\sqrt{T})$ regret", "in n log n time, Õ(√T) regret"),
        (r"$\frac{1}{n+1}$ and $x^{\alpha+1}$", "1/(n+1) and x^(α+1)"),
        (r"$\approx$1.9M, 17$\rightarrow$30, 2$ \times $ 3", "≈1.9M, 17→30, 2× 3"),
        (r"$\mathbb{R}^{d\times k}$, $A^\top$, $10^{-3}$", "ℝ^(d×k), A^⊤, 10⁻³"),
        (r"\(a \leq b\) and \[p<0.05\]", "a ≤ b and p < 0.05"),
        (r"Schr\"odinger, Erd\H{o}s, {\'E}cole, na\"{\i}ve, \O{}rsted", "Schrödinger, Erdős, École, naïve, Ørsted"),
        (r"AP\textsubscript{50}, R\textsuperscript{2}, \eg a \textbf{\textit{$\pi$-walk}}", "AP₅₀, R², e.g. a π-walk"),
        (r"$10%$ of $\textbf{24.18\%}$, $\textbf{19.7%}$", "10% of 24.18%, 19.7%"),
        (r"up by $+$0.03 at 4.8$\times$ speed", "up by +0.03 at 4.8× speed"),
        (r"$\tilde{\calX}$ and $\TildeΔ$", "𝒳̃ and Δ̃"),
        (r"on $\St$, in $\cO^*(\sqrt{m})$ steps, $\pmean \to \qmean$", "on St, in cO*(√m) steps, pmean → qmean"),
        (r"$\le 0.6\times 10^{15}\msun$, $x^\foo_\z$, $\hat\R$", "≤ 0.6×10¹⁵ msun, x_z^(foo), R̂"),
        (r"3 vs.\ 4 i.i.d.\ ponds, $n$\ frogs by \method\ alone", "3 vs. 4 i.i.d. ponds, n frogs by method alone"),
        ("17$/$23 ponds for $5", "17/23 ponds for $5"),
        (r"we give $\textbf{the very first method (OMM)}$", "we give the very first method (OMM)"),
        ("``tight'' and ``loose, that's all''", "“tight” and “loose, that's all”"),
        (r"\textcolor{red}{hot} \url{https://x.test/a_b}", "hot https://x.test/a_b"),
    ],
)
def test_mathematics_and_commands_become_characters(written: str, read: str) -> None:
    assert readable(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"We introduce \hs{}, a pond; \method beats {LoRA\xspace}.", "We introduce hs, a pond; method beats LoRA."),
        ("An Encoder~(FrogEnc) of 306~ponds on DOTA~v1.5", "An Encoder (FrogEnc) of 306 ponds on DOTA v1.5"),
        (r"the \dbname~dataset of~\modelname and \acs{llm}s", "the dbname dataset of modelname and llms"),
        (r"\rev{A \textbf{loud} frog}, {\color{black} wet} \small", "A loud frog, wet "),
        (r"Frogs~\cite{a2026,b} and \citet[p.~2]{c}; see \Cref{fig:x}", "Frogs [a2026,b] and [c]; see [fig:x]"),
        (r"shared\footnote{\label{x} See \href{https://p.test}{\emph{here}}}.", "shared (See here)."),
        (r"2.3\,M at 60\textdegree{}, >\SI{96}{\percent}, $10$\,dB", "2.3 M at 60°, >96%, 10 dB"),
        (r"O(N \cdot K), s\in\mathbb{N}, 2.5{\times}, 9{,}800\%", "O(N · K), s∈ N, 2.5×, 9,800%"),
        (r"\ding{182} first, \jump{$_k$} and \emph{unclosed", "❶ first, jumpₖ and  unclosed"),
        (r"$\mathrm{Schr\"odinger}$'s cat, \v Skoda", "Schrödinger's cat, Škoda"),
        ("noisy--clean, 1.2--1.8x -- as ``loud frogs'' do---often", "noisy–clean, 1.2–1.8x – as “loud frogs” do—often"),
        ("run --fast, see https://p.test/a--b", "run --fast, see https://p.test/a--b"),
        (r"C:\ponds\new beside \ours", r"C:\ponds\new beside ours"),
    ],
)
def test_a_command_outside_mathematics_is_never_shown_with_its_backslash(written: str, read: str) -> None:
    assert readable(written) == read


@pytest.mark.parametrize(
    "plain",
    [
        "from $5 to $6 a frog",
        "50% better_than #1 & ~3",
        "https://p.test/~ada and www.p.test/x~bob",
        "{a} b $",
        r"C:\ponds\new",
        "a $ b $ c",
        "$",
    ],
)
def test_what_only_looks_like_tex_stays_as_it_is(plain: str) -> None:
    assert readable(plain) == plain


@given(st.text(alphabet="$\\{}^_ abfrac12%&\n"))
def test_no_text_is_too_broken_to_be_read(text: str) -> None:
    assert isinstance(readable(text), str)


UNREADABLE = [
    r"$\foo{x}$",  # it is not known what it does with x
    r"$\foo12$",
    r"a $\verb|x|$",
    r"$\input{x}$",
    r"$\footnote{x}$ {x}",
    "$" + "{" * 300 + "x" + "}" * 300 + "$",
    "$" + "x" * 100_000 + "$",
    r"costs $5 more than the other costs, at $x",
]


@pytest.mark.parametrize("source", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_cannot_be_read_is_shown_as_it_was_written(source: str) -> None:
    assert readable(source) == source


@pytest.mark.parametrize(
    "source",
    [
        r"$\href{..}{..}$",
        r"$\colorbox{red}{x}$",
        r"$\fcolorbox{a}{b}{c}$",
        r"\exercise",
        r"$\begin{array}a\end{array}$",
        r"\include{a}\include{b}",
        r"$\verb$",
        r"\verb",
        r"$\author$ $\date$",
        "$$",
        r"\(\(",
        r"$\left($",
        r"$^$",
        r"$\begin{matrix}a&b\\c$",
        r"$\sqrt[$",
        r"$\frac{a}$",
        "$'a",
        r"$\text{$x$}$",
    ],
)
def test_no_source_is_an_error(source: str) -> None:
    assert isinstance(readable(source), str) and isinstance(html_with_mathml(source), str)


def test_html_has_mathml_and_nothing_from_strangers() -> None:
    assert html_with_mathml("a < b & $x^2$").startswith("a &lt; b &amp; <math")
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html_with_mathml("$x^2$")
    page = html_with_mathml(r"$\href{javascript:alert(1)}{x}$ $\colorbox{red}{y}$ $\style{color:red}{z}$ <script>")
    assert "href" not in page and "mathbackground" not in page and "style" not in page and "<script>" not in page


FRAGMENTS = st.sampled_from(
    [
        "$",
        "$$",
        "\\(",
        "\\)",
        "{",
        "}",
        "^",
        "_",
        "\\frac",
        "\\sqrt[",
        "\\left(",
        "\\right",
        "\\begin{array}",
        "\\end{array}",
        "\\text{",
        "\\href{",
        "\\mathbb",
        "\\alpha",
        "\\verb|",
        "&",
        "\\\\",
        "x",
        " ",
        "2",
        "é",
        "漢",
        "\ue000",
        "<b>",
        "'",
        "%",
    ]
)


@given(st.lists(FRAGMENTS, max_size=40).map("".join))
def test_generated_tex_is_never_an_error(text: str) -> None:
    assert isinstance(readable(text), str)
    assert "<b>" not in html_with_mathml(text)


def test_marks_surround_words_and_leave_formulas_and_accents_whole() -> None:
    text = r"Graphs of $graph^2$, graph \emph{graph} & Poincar\'e: e graph$_2$ costs $5 and $6"
    spans = [found.span() for found in re.finditer("[Gg]raph|e(?![a-z])|6", text)]
    shown = html_with_mathml(text, marked=spans)
    assert shown.count("<mark>graph</mark>") == 2
    assert "<mark>Graph</mark>s" in shown
    assert "Poincaré" in shown
    assert re.sub("</?mark>", "", shown) == html_with_mathml(text)


@given(
    st.text(alphabet="$\\{}^_ abfrac12%&\n"), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=5)
)
def test_marks_never_change_the_text_or_leave_a_tag_open(text: str, marked: list[tuple[int, int]]) -> None:
    shown = html_with_mathml(text, marked=[each for each in marked if each[0] < each[1]])
    assert shown.count("<mark>") == shown.count("</mark>")
    assert "\ue003" not in shown
    assert "\ue004" not in shown


def test_names_of_functions_keep_their_distance() -> None:
    assert '<mi>n</mi><mo lspace="0.167em" rspace="0.167em">log</mo><mi>n</mi>' in html_with_mathml(r"$n\log n$ steps")


@pytest.mark.parametrize(
    "text", [r"Schr\"odinger-cat states", r"Schr{\'{e}}dinger-cat", r"\emph{a b}-c", r"\url{http://a.b/c}"]
)
def test_a_mark_that_ends_within_tex_leaves_the_tex_readable(text: str) -> None:
    plain = html_with_mathml(text)
    spans = [(start, end) for start in range(len(text)) for end in range(start + 1, len(text) + 1)]
    assert {re.sub("</?mark>", "", html_with_mathml(text, marked=[each])) for each in spans} == {plain}
    first, broken = (0, 1), (1, text.index("\\") + 2)
    if text[0] != "\\":
        assert html_with_mathml(text, marked=[first, broken]).startswith(f"<mark>{text[0]}</mark>")
