"""TeX of titles and abstracts is read; what only looks like it keeps its letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.text.tex import readable


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
    ],
)
def test_mathematics_and_commands_become_characters(written: str, read: str) -> None:
    assert readable(written) == read


@pytest.mark.parametrize(
    "plain", ["from $5 to $6 a frog", "50% better_than #1 & ~3", "{a} b $", r"C:\ponds\new", "a $ b $ c", "$"]
)
def test_what_only_looks_like_tex_stays_as_it_is(plain: str) -> None:
    assert readable(plain) == plain


@given(st.text(alphabet="$\\{}^_ abfrac12%&\n"))
def test_no_text_is_too_broken_to_be_read(text: str) -> None:
    assert isinstance(readable(text), str)
