r"""TeX in titles and abstracts as a reader sees it: `$\neq$` is ≠, `R$^2$` is R², `\emph{word}` is word.

arXiv's metadata is plain text in which authors write some TeX. Only what is surely TeX is changed: mathematics between
dollars (by pandoc's rule, so that "from $5 to $6" keeps its dollars) and a few commands outside it; all else stays as
it was written, a per cent sign included.
"""

import logging
import re
from functools import cache
from typing import Any

_MATHS = re.compile(r"(?<!\\)\$(?=\S)((?:[^$\\]|\\.)+?)(?<=\S)(?<!\\)\$(?!\d)")
_FONT = re.compile(
    r"\\(?:texttt|textsc|textsf|textit|textbf|textrm|text|emph|mathrm|mathbf|mathcal|mathbb|mathsf|mathit|operatorname"
    r"|mbox)\s*\{([^{}]*)\}"
)
_OLD_FONT = re.compile(r"\{\\(?:rm|bf|it|sf|tt|sc|em)\s+([^{}]*)\}")
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_RAISED = re.compile(r"\^(?:\{([^{}\\]+)\}|([^\s{}\\]))")
_LOWERED = re.compile(r"_(?:\{([^{}\\]+)\}|([^\s{}\\]))")
_HIGH = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOW = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")


def readable(text: str) -> str:
    """The text with its TeX as characters; what cannot be read as TeX is left alone."""
    if "$" not in text and "\\" not in text:
        return text
    words = _MATHS.sub(lambda found: _mathematics(found[1]), text)
    return _ESCAPED.sub(r"\1", _FONT.sub(r"\1", words))


def _mathematics(source: str) -> str:
    plain = _FONT.sub(r"\1", _OLD_FONT.sub(r"{\1}", source)).replace(r"^{\circ}", "°").replace(r"^\circ", "°")
    plain = re.sub(r"([\^_])([A-Za-z0-9])(?![A-Za-z0-9])", r"\1{\2}", plain)
    plain = _LOWERED.sub(
        lambda found: _set(found, _LOW, "_"), _RAISED.sub(lambda found: _set(found, _HIGH, "^"), plain)
    )
    if "\\" not in plain and "{" not in plain:
        return plain
    found: str = _converter().latex_to_text(plain)
    return " ".join(found.split()) or source


def _set(found: re.Match[str], letters: dict[int, int], mark: str) -> str:
    """The index or exponent in small figures where there are such, else behind its mark as it was."""
    inside = (found[1] or found[2]).strip()
    if all(ord(letter) in letters for letter in inside):
        return inside.translate(letters)
    return f"{mark}{inside}" if len(inside) == 1 else f"{mark}({inside})"


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text  # a tenth of a second, and most days hold no TeX

    logging.getLogger("pylatexenc").setLevel(logging.ERROR)  # what an author mistypes is nothing to warn of
    return LatexNodes2Text(math_mode="text", keep_comments=True)
