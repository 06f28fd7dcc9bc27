r"""Show TeX in titles and abstracts as a reader expects it: `$\neq$` is ≠, `R$^2$` is R², `\emph{word}` is word.

arXiv's metadata is plain text in which authors write some TeX. Only what is certainly TeX is changed: mathematics
between dollars (by pandoc's rule, so that "from $5 to $6" keeps its dollars), `\(…\)` and `\[…\]`, and outside
mathematics accents, dashes, quotation marks and commands. A command that is not known there is often an author's own,
for the name of a method: it is shown as its name without the backslash, or as the content of its braces where it has
any (`_COMMAND`). In a formula such a command is shown by its name if it has no argument (`$\msun$` is msun); what it
does with arguments is not known. Everything else stays as it was written.

`readable` returns characters, for terminals, mail and assistants; `html_with_mathml` returns HTML with MathML, for
pages. Both are total: they never raise, and what cannot be read, is too long or too deeply nested is shown as its
source.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape, unescape
from unicodedata import combining, normalize
from xml.etree.ElementTree import Element, tostring

LONGEST_TEXT = 50_000  # characters; arXiv allows 1,920 in an abstract
_LONGEST_FORMULA = 2_000  # characters
_MOST_FORMULAS = 300  # of one text
_DEEPEST = 40  # groups within groups

_MARK_START, _MARK_END = "\ue003", "\ue004"  # private characters around a marked span
_OPEN, _CLOSE = "\ue000", "\ue001"  # private characters around the number of a formula
_MATHS = re.compile(
    # Each alternative scans to the next mark of its kind only, so that no text makes the search quadratic.
    r"(?<!\\)\$(?=[^$\s\\]*\\)(?P<tight>[^$\s]+)\$(?=\d)"  # as in $\sim$25, which pandoc does not read
    r"|(?<!\\)\$(?P<sign>[-+<>=~±×≈≤≥/])\$(?=\d)"  # as in $+$0.03
    r"|(?<!\\)\$\s+(?P<spaced>\\[A-Za-z]+)\s+\$"
    r"|(?<!\\)\$\$(?P<display>(?:[^$\\]|\\.)+?)\$\$"
    r"|(?<!\\)\$(?=\S)(?P<inline>(?:[^$\\]|\\.)+?)(?<=\S)(?<!\\)\$(?!\d)"
    r"|(?<!\\)\\\((?P<paren>(?:[^\\]|\\[^()])+?)\\\)"
    r"|(?<!\\)\\\[(?P<bracket>(?:[^\\]|\\[^\[\]])+?)\\\]",
    re.DOTALL,
)
_FONTS = (
    "texttt|textsc|textsf|textit|textbf|textrm|textsl|textup|textnormal|text|emph|mathrm|mathbf|mathcal|mathbb|mathsf|mathit"
    "|operatorname|mbox|underline|uline"
)
_FONT = re.compile(rf"\\(?:{_FONTS}|textcolor\s*\{{[^{{}}]*\}})\s*\{{([^{{}}]*)\}}")
_LINK = re.compile(r"\\(?:url|path)\s*\{([^{}]*)\}|\\href\s*\{([^{}]*)\}(?:\s*\{([^{}]*)\}|(?!\s*\{))")
_OLD_FONT = re.compile(r"\{\\(?:rm|bf|it|sf|tt|sc|em|sl)\s+([^{}]*)\}")
_FIGURES = re.compile(r"\\text(super|sub)script\s*\{([^{}]*)\}")
_SHORTS = {
    "eg": "e.g.",
    "ie": "i.e.",
    "etal": "et al.",
    "cf": "cf.",
    "etc": "etc.",
    "ldots": "…",
    "dots": "…",
    "textendash": "–",
}
_SHORT = re.compile(rf"\\({'|'.join(_SHORTS)})(?![A-Za-z])(?:\{{\}})?\.?")
_HELD_SPACE = "\ue002"  # a private character in place of the spaces in a formula
_MATH_ELEMENT = re.compile(r'<math [^>]*?alttext="([^"]*)"[^>]*>.*?</math>', re.DOTALL)
_SPACE = re.compile(r"\s")
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_COMMAND_BEFORE = re.compile(r"\\[^\sA-Za-z]?\{?$")  # the span is a command's name, or the letter of an accent
_BESIDE = rf"[\w()%{_OPEN}{_CLOSE}{_MARK_START}{_MARK_END}]"
_DASH = re.compile(rf"(?<={_BESIDE})(---?)(?={_BESIDE})|(?<= )(---?)(?= )")
_ADDRESSES = re.compile(r"((?:\w+://|www\.)\S*)")  # their dashes are their own
_QUOTED = re.compile(r"(?<!`)``(?!`)([^`]{1,400}?)''(?!')")
_TIE = re.compile(r"(?<!\\)~(?=\\)|(?<=\})~|(?<=[A-Za-z])~(?=[(\[A-Za-z])")
_TIE_ALONE = re.compile(r"(?<=[A-Za-z0-9])~(?=\([A-Z]|[A-Za-z]{3}|v\d)")  # Encoder~(TE), 306~images
_TOUCHING = re.compile(rf"(\\[A-Za-z]+)(?=\\(?:{_FONTS})\s?\{{)")  # as in \in\mathbb{N}
# The braces contain no others, so inner commands are converted first; a path of Windows is not TeX.
_COMMAND = re.compile(
    r"(?<![^\s\"'(\[])[A-Za-z]:\\\S*"
    r"|\\(?:(?P<cite>[Cc]ite[A-Za-z]*|(?:[Cc]|eq|auto|page|name|v)?ref))\*?\s?(?:\[[^\[\]{}]*\]){0,2}\{(?P<keys>[^{}]*)\}"
    r"|\\(?P<name>[A-Za-z]+)\*?(?:\[[^\[\]{}]*\])?(?P<content>(?:\s?\{(?:[^{}\\]|\\[^A-Za-z{}])*\})+)"
    r"|\\(?P<alone>[A-Za-z]{2,}|[A-Za-z](?=\}))(?![A-Za-z]|\s?\{)(?:~| (?=[.,;:)]))?"
    rf"|(?<=[\w%){_CLOSE}])\\(?P<space>[,;:])(?=[\w({_OPEN}])"
)
_UNCLOSED = re.compile(r"\\[A-Za-z]{2,}\s?\{")
_DEEPEST_COMMANDS = 6
_ELSEWHERE = re.compile(rf"{_FONTS}|textcolor|text(?:super|sub)script|url|path|href")
_WITHOUT_CONTENT = re.compile(  # with their arguments, which are lengths, colours, files and names of labels
    r"label|color|pagecolor|[hv]space|vskip|hskip|includegraphics|begin|end|item|small|tiny|large|Large|footnotesize"
    r"|normalsize|scriptsize|bf|it|rm|sf|tt|sc|em|sl|bfseries|itshape|ttfamily|scshape|xspace|protect|noindent|par|newline"
    r"|linebreak|left|right|big|Big|bigl|bigr|Bigl|Bigr|fa[A-Z][A-Za-z]*|centering|maketitle|thanks|hfill|quad|qquad"
)
_SIGNS = {
    "textasciitilde": "~", "textdegree": "°", "degree": "°", "percent": "%", "textmu": "µ", "texttimes": "×",
    "textasciicircum": "^", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "textregistered": "®", "textunderscore": "_", "textellipsis": "…", "textbullet": "•",
    "textless": "<", "textgreater": ">", "textbar": "|", "textquotesingle": "'", "texttrademark": "™", "copyright": "©",
    "textemdash": "—", "S": "§", "P": "¶", "aka": "a.k.a.", "wrt": "w.r.t.", "vs": "vs.", "and": ",", "LaTeX": "LaTeX",
}  # fmt: skip
_DROPPED = "\ue005"  # a private character where a command was dropped: the braces around it were only TeX's
_DROPPED_GROUP = re.compile(f"\\{{([^{{}}]*{_DROPPED}[^{{}}]*)\\}}")
_DROPPED_SPACE = re.compile(f"(?:(?<=[\\s({{])|^){_DROPPED} *| ?{_DROPPED}(?=[.,;:)])|{_DROPPED}")
_SIGN_GROUP = re.compile(r"\{([×·±≈≤≥°%,])\}")  # as in 9{,}800
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_CONTROL_SPACE = re.compile(rf"(?<=[\w.,;)\]%{_CLOSE}])\\(?= )")  # as in vs.\ 500
_ACCENTED = re.compile(r"\{?\\(['`^\"~=.]|[uvHckrdb](?![A-Za-z]))\s*(?:\{\s*(\\?[A-Za-z])\s*\}|(\\?[A-Za-z]))\}?")
_ACCENT_OF_WORDS = re.compile(
    r"\{?\\(['`^\"])(?:\{\s*(\\?[A-Za-z])\s*\}|(\\?[A-Za-z]))\}?"
)  # in \mathrm{Schr\"odinger}
_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323",
    "b": "\u0331",
}  # fmt: skip
_LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
            "AA": "Å", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ"}  # fmt: skip
_LETTER = re.compile(rf"\{{?\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?:\{{\}}|(?![A-Za-z]))\s?\}}?")

# Commands that the parser does not know, as ones that it knows. Any other makes the formula unreadable.
_OPERATORS = "arg|argmax|argmin|softmax|sign|sgn|diag|rank|tr|Tr|polylog|poly|Var|Cov|supp|vol|KL|MSE|ReLU"
_REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"\\({_OPERATORS})(?![A-Za-z])"), r"\\operatorname{\1}"),
    (re.compile(r"\\(?:mathds|mathbbm|mathbbmss|Bbb)(?![A-Za-z])"), r"\\mathbb"),
    (re.compile(r"\\(?:textsc|textsl|textup|textnormal|mbox|hbox|textmd)(?![A-Za-z])"), r"\\text"),
    (re.compile(r"\\(?:boldmath|displaystyle|textstyle|scriptstyle|limits|nolimits|xspace|protect|ensuremath)"
                r"(?![A-Za-z])"), ""),
    (re.compile(r"\\(?:emph)(?![A-Za-z])"), r"\\textit"),
    (re.compile(r"\\eps(?![A-Za-z])"), r"\\epsilon"),
    (re.compile(r"(?<!\\)%"), r"\\%"),  # an abstract has no comments: $10%$ is meant as 10 %
    (re.compile(r"\\Tilde(?![A-Za-z])"), r"\\tilde"),
    (re.compile(r"\\cal\s*([A-Z])(?![A-Za-z])"), r"\\mathcal{\1}"),
    (re.compile(r"\\(?:href|url|label|tag|hspace|vspace|phantom|hphantom|vphantom)\s*\{[^{}]*\}"), ""),
)  # fmt: skip
_NAMED = re.compile(r"\\([A-Za-z]+)(?![A-Za-z]|\s*[{\[\d])")  # a command without an argument
_UNSUPPORTED = re.compile(
    r"\\(?:input|include|includegraphics|footnote|title|author|date|def|newcommand|renewcommand|verb|catcode|write|read"
    r"|openout|csname|special|maketitle|tableofcontents)(?![A-Za-z])"
)
# Words or an address between dollars, without any mathematics: `$\textbf{the first method}$`.
_ONLY_WORDS = re.compile(
    r"\\(?:textbf|textit|textsl|textsc|texttt|textrm|text|emph|underline|mbox|url|href)\s*\{.*\}", re.DOTALL
)
_PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}(?=[\s,.])")
_TAGS = frozenset([
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msup", "msub", "msubsup", "mfrac", "msqrt", "mroot", "mover",
    "munder", "munderover", "mtable", "mtr", "mtd", "mpadded", "mstyle", "mphantom", "menclose", "mmultiscripts",
    "mprescripts", "none", "semantics",
])  # fmt: skip
_ATTRIBUTES = frozenset(
    ["display", "mathvariant", "stretchy", "fence", "form", "accent", "accentunder", "linethickness"]
)

_HIGH = dict(zip("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ", strict=True))
_LOW = dict(zip("0123456789+-−=()aeijoruvxhklmnpst", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑᵢⱼₒᵣᵤᵥₓₕₖₗₘₙₚₛₜ", strict=True))
_FUNCTIONS = frozenset([
    "arg", "max", "min", "log", "ln", "exp", "sin", "cos", "tan", "lim", "sup", "inf", "det", "dim", "ker", "deg",
    "gcd", "Pr", "mod", "argmax", "argmin", "sinh", "cosh", "tanh", "liminf", "limsup", "lg", "rank", "diag", "tr",
    "sign",
])  # fmt: skip
_SPACED = frozenset("=≠≈∼≃≅≡<>≤≥≪≫∈∉⊂⊆⊃⊇∪∩→←↔⇒⇐⇔↦∝∣∥≻≺⊢⊨≲≳")


class MathText(str):
    """A text whose TeX is shown as Unicode characters, with its source, so that HTML can show formulas as MathML."""

    source: str

    def __new__(cls, source: str) -> "MathText":
        """Return the text that `readable` makes of the source."""
        made = super().__new__(cls, readable(source))
        made.source = source
        return made


def hold_formulas(text: str) -> str:
    """Replace the spaces in formulas, so that code that cuts at spaces cannot cut a formula; same length."""
    return _MATHS.sub(lambda found: _SPACE.sub(_HELD_SPACE, found[0]), text) if _has_tex(text) else text


def release_formulas(text: str) -> str:
    """Restore the spaces that `hold_formulas` replaced."""
    return text.replace(_HELD_SPACE, " ")


def without_mathml(html: str) -> str:
    """Replace the MathML in our HTML by characters, for mail and feeds, whose readers often ignore MathML."""
    return _MATH_ELEMENT.sub(r"\1", html)


def readable(text: str) -> str:
    """Return the text with its TeX as Unicode characters; unreadable TeX stays as it was written."""
    if not _has_tex(text):
        return text
    words, formulas = _taken_apart(text)
    return _put_together(_plain_words(words), [_unicode_formula(written, source) for written, source in formulas])


def readable_words(text: str) -> str:
    """Return the text with the TeX of its words as characters and without braces; formulas stay as they are written."""
    words, formulas = _taken_apart(text)
    return _put_together(re.sub(r"[{}]", "", _plain_words(words)), [written for written, _ in formulas])


def html_with_mathml(text: str, *, marked: Sequence[tuple[int, int]] = ()) -> str:
    """Return the text as HTML: escaped, its mathematics as MathML; unreadable TeX is shown as it was written.

    `marked`: the spans [start, end) to put into `<mark>`; one that touches a formula or an accent is left out.
    """
    plain = _html(text)
    if not marked:
        return plain
    found = _html_marked(text, marked)
    if _without_marks(found) != plain:  # a span that ends within TeX, and hides it
        kept = [span for span in marked if _without_marks(_html_marked(text, [span])) == plain]
        found = _html_marked(text, kept)
    return found if _without_marks(found) == plain else plain


def _html(text: str) -> str:
    if not _has_tex(text):
        return escape(text)
    words, formulas = _taken_apart(text)
    return _put_together(escape(_plain_words(words)), [_html_formula(written, source) for written, source in formulas])


def _html_marked(text: str, marked: Sequence[tuple[int, int]]) -> str:
    found = _html(_with_marks(text, marked))
    whole = found.count(_MARK_START) == found.count(_MARK_END)
    start, end = ("<mark>", "</mark>") if whole else ("", "")
    return found.replace(_MARK_START, start).replace(_MARK_END, end)


def _without_marks(html: str) -> str:
    return html.replace("<mark>", "").replace("</mark>", "")


def formula_spans(text: str) -> list[tuple[int, int]]:
    """Return where the formulas of a text start and end, so that code that divides a text can keep them whole."""
    return [found.span() for found in _MATHS.finditer(text)] if _has_tex(text) else []


def _with_marks(text: str, marked: Sequence[tuple[int, int]]) -> str:
    """Put private characters around the spans that lie outside formulas, commands and accents."""
    text = text.replace(_MARK_START, " ").replace(_MARK_END, " ")
    formulas = formula_spans(text)
    for start, end in sorted(marked, reverse=True):
        inside = (
            any(first <= end and start <= last for first, last in formulas) or "$" in text[max(start - 1, 0) : end + 1]
        )
        if start < end <= len(text) and not inside and not _COMMAND_BEFORE.search(text, max(start - 3, 0), start):
            text = f"{text[:start]}{_MARK_START}{text[start:end]}{_MARK_END}{text[end:]}"
    return text


_SIGNS_OF_TEX = ("{", "$", "\\", "--", "``", "~")


def _has_tex(text: str) -> bool:
    private = _OPEN in text or _HELD_SPACE in text
    return any(sign in text for sign in _SIGNS_OF_TEX) and len(text) <= LONGEST_TEXT and not private


def _taken_apart(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Replace each formula by a mark; return the text, and each formula as written and as TeX."""
    formulas: list[tuple[str, str]] = []

    def mark(found: re.Match[str]) -> str:
        formulas.append((found[0], next(source for source in found.groups() if source is not None)))
        return f"{_OPEN}{len(formulas) - 1}{_CLOSE}"

    return _MATHS.sub(mark, text, count=_MOST_FORMULAS), formulas


def _put_together(words: str, formulas: list[str]) -> str:
    return _MARK.sub(lambda found: formulas[int(found[1])], words)


def _html_formula(written: str, source: str) -> str:
    formula = _formula(source)
    if formula is None:
        return escape(_words_alone(source) or written)
    return tostring(formula, encoding="unicode")


def _words_alone(source: str) -> str | None:
    """Return the text of a formula that is only words in a font, or an address; None if it has any mathematics."""
    if not _ONLY_WORDS.fullmatch(source.strip()):
        return None
    words = _plain_words(source.strip())
    return None if any(sign in words for sign in "\\{}^_") and "://" not in words else words


_NUMBER_GROUP = re.compile(r"(?<![\\\w}])\{(\d[\d.,]*)\}|(?<=\d)\{(\d*)\}(?=\d)")  # {99}%, 9{}408


def _plain_words(text: str) -> str:
    """Convert dashes, quotation marks, accents, fonts and links outside mathematics to characters."""
    if "--" in text:
        text = "".join(
            part if at % 2 else _DASH.sub(lambda found: "—" if "---" in found[0] else "–", part)
            for at, part in enumerate(_ADDRESSES.split(text))
        )
    text = _QUOTED.sub(r"“\1”", text) if "``" in text else text
    text = _NUMBER_GROUP.sub(lambda found: found[1] or found[2] or "", text) if "{" in text else text
    if "~" in text:
        text = "".join(part if at % 2 else _TIE_ALONE.sub(" ", part) for at, part in enumerate(_ADDRESSES.split(text)))
    if "\\" not in text:
        return text
    text = _ACCENTED.sub(_accented, text)
    text = _LETTER.sub(lambda found: _LETTERS[found[1]], text)
    text = _SHORT.sub(lambda found: _SHORTS[found[1]], text)
    text = _TOUCHING.sub(r"\1 ", _TIE.sub(" ", text))
    for _ in range(_DEEPEST_COMMANDS):
        before = text
        text = _OLD_FONT.sub(r"\1", _FONT.sub(r"\1", text))
        text = _DROPPED_GROUP.sub(r"\1", _SIGN_GROUP.sub(r"\1", _COMMAND.sub(_without_command, text)))
        text = _LINK.sub(lambda found: found[1] or found[3] or found[2] or "", text)
        text = _FIGURES.sub(
            lambda found: _small(found[2], _HIGH, "^") if found[1] == "super" else _small(found[2], _LOW, "_"), text
        )
        if text == before:
            break
    text = _CONTROL_SPACE.sub("", _UNCLOSED.sub(" ", _DROPPED_SPACE.sub("", text)))
    return _ESCAPED.sub(r"\1", text)


def _without_command(found: re.Match[str]) -> str:
    """Convert a command outside mathematics to the sign, the key, the content or the name that it is for a reader."""
    if found["cite"]:
        return f"[{found['keys'].strip()}]"
    if found["space"]:
        return " "
    name = found["name"] or found["alone"]
    if name is None or (found["content"] and _ELSEWHERE.fullmatch(name)):
        return found[0]
    after = " " if found[0].endswith("~") else ""
    if _WITHOUT_CONTENT.fullmatch(name):
        return f"{_DROPPED}{after}"
    contents = [each.strip() for each in re.findall(r"\{([^{}]*)\}", found["content"] or "")]
    if name in _SIGNS:
        shown = " ".join([_SIGNS[name], *filter(None, contents)])
    elif name == "ding":
        shown = _dingbat(contents[0] if contents else "")
    elif (formula := _formula("".join([f"\\{name}", *(f"{{{each}}}" for each in contents if each)]))) is not None:
        shown = _as_characters(formula)
    elif not any(map(str.isalnum, _MARK.sub("", "".join(contents)))):
        shown = f"{name}{''.join(contents)}"
    elif name.startswith("footnote"):
        shown = f"{'' if found.string[: found.start()].endswith(' ') else ' '}({' '.join(contents)})"
    else:
        shown = f"{name if len(name) == 1 else ''}{' '.join(filter(None, contents))}"
    return f"{shown}{after}"


def _dingbat(number: str) -> str:
    """Return the circled number that `\\ding{182}` prints, or nothing."""
    code = int(number) if number.isdecimal() and len(number) == 3 else 0
    if 172 <= code <= 181:
        return chr(0x2460 + code - 172)
    return chr(0x2776 + code - 182) if 182 <= code <= 211 else ""


def _accented(found: re.Match[str]) -> str:
    letter = (found[2] or found[3]).lstrip("\\")
    if found[1].isalpha() and not found[2] and not found[0].startswith("{") and " " not in found[0]:
        return found[0]  # `\\c o` is an accent only with braces or a space: "C:\\convert" is a path
    joined = normalize("NFC", letter + _ACCENTS[found[1]])
    return joined if len(joined) == 1 else found[0]


@lru_cache(maxsize=4_096)
def _formula(source: str) -> Element | None:
    """Convert a formula to MathML with only the elements of `_TAGS` and `_ATTRIBUTES`; None if unreadable."""
    if len(source) > _LONGEST_FORMULA or _UNSUPPORTED.search(source) or _depth(source) > _DEEPEST:
        return None
    if len(_PROSE.findall(source)) >= 2:  # dollars that do not belong together, with a sentence between them
        return None
    source = _ACCENT_OF_WORDS.sub(_accented, source)
    for pattern, replacement in _REWRITTEN:
        source = pattern.sub(replacement, source)
    try:
        from latex2mathml.converter import convert_to_element  # a quarter of a second, and most days have no TeX

        found = convert_to_element(source.strip())
        if unknown := {each.text for each in found.iter() if (each.text or "").startswith("\\")}:
            found = convert_to_element(_NAMED.sub(lambda one: _by_name(one) if one[0] in unknown else one[0], source))
        formula = _checked(found, 0)
        if formula is not None:
            formula.set("alttext", _as_characters(formula) or source.strip())
        return formula
    except Exception:  # the parser raises whatever its author did not think of
        return None


def _by_name(command: re.Match[str]) -> str:
    return "" if _WITHOUT_CONTENT.fullmatch(command[1]) else f"{{\\operatorname{{{command[1]}}}}}"


def _checked(element: Element, depth: int) -> Element | None:
    """Copy the element with only allowed elements and attributes; None if a command was not understood."""
    tag = element.tag.rpartition("}")[2]
    text = unescape(element.text or "")  # the parser writes characters as entities
    if tag == "mtext":
        text = _ESCAPED.sub(r"\1", text)
    if tag not in _TAGS or depth > 2 * _DEEPEST or "\\" in text:
        return None
    copy = Element(tag, {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES})
    if tag == "math":
        copy.set("display", "inline")
    if tag == "mi" and text in _FUNCTIONS:  # as an operator, so that `n log n` keeps its spaces
        copy.tag = "mo"
        copy.set("lspace", "0.167em")
        copy.set("rspace", "0.167em")
    copy.text = text
    for child in element:
        inner = _checked(child, depth + 1)
        if inner is None:
            return None
        copy.append(inner)
    return copy


def _depth(source: str) -> int:
    deepest = depth = 0
    for sign in source:
        depth += (sign == "{") - (sign == "}")
        deepest = max(deepest, depth)
    return deepest


def _unicode_formula(written: str, source: str) -> str:
    formula = _formula(source)
    if formula is None:
        return _words_alone(source) or written
    return _as_characters(formula) or written


def _as_characters(formula: Element) -> str:
    return " ".join(_unicode(formula).split())


def _unicode(element: Element) -> str:
    """Write a MathML element as characters: x², aᵢ, (a + b)/c, √(x + 1)."""
    render = _RENDERED.get(element.tag)
    if render is not None and len(element) >= 2:
        return render([_unicode(child) for child in element])
    if element.tag == "msqrt":
        return f"√{_grouped(_joined(element))}"
    if element.tag == "mspace":
        return " "
    if element.tag == "mtr":
        return ", ".join(_unicode(child) for child in element)
    if element.tag == "mtable":
        return "; ".join(_unicode(child) for child in element)
    if len(element):
        return _joined(element)
    text = (element.text or "").replace("−", "-")
    if element.tag == "mo" and text in _SPACED:
        return f" {text} "
    if element.tag == "mi" and text == "~":
        return "∼"
    return text


def _joined(element: Element) -> str:
    """Join the children; names of functions keep a space: `n log n`."""
    found = ""
    after_function = False
    for child in element:
        text = _unicode(child)
        if not text:
            continue
        name = _is_function(child)
        if (name and found and (found[-1].isalnum() or found[-1] in ")]}∥‖")) or (
            after_function and (text[0].isalnum() or not text[0].isascii())
        ):
            found += " "
        found += text
        after_function = name
    return found


def _is_function(element: Element) -> bool:
    """Return whether an element is a function's name, possibly with an index or exponent."""
    if element.tag in ("msub", "msup", "msubsup", "munder", "mover", "munderover") and len(element):
        return _is_function(element[0])
    if len(element) == 1:
        return _is_function(element[0])
    text = element.text or ""
    return (element.tag in ("mi", "mo") and text in _FUNCTIONS) or (
        element.tag == "mo" and len(text) > 1 and text.isalpha()
    )


def _grouped(text: str) -> str:
    """Put the text in parentheses if it has more than one part."""
    text = text.strip()
    simple = len(text) == 1 or re.fullmatch(r"[\d.]+|[A-Za-z]+|\(.*\)|\w[₀-₉ᵢⱼₙ]*|[^\W\d_]\W?", text)
    return text if simple else f"({text})"


def _small(text: str, figures: dict[str, str], mark: str) -> str:
    """Write an index or exponent in small characters if all of it can be; otherwise after its mark."""
    text = text.strip()
    if text and all(letter in figures for letter in text):
        return "".join(figures[letter] for letter in text)
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"


def _raised(parts: list[str]) -> str:
    base, exponent = parts[0], parts[1].strip()
    if exponent in ("∘", "°"):
        return f"{base}°"
    if exponent and set(exponent) <= {"′", "'", "*", "∗", "†", "‡", "⊤", "⊥"}:
        return f"{base}{'^' if exponent in ('⊤', '⊥') else ''}{exponent}"
    return f"{base}{_small(exponent, _HIGH, '^')}"


_OVER = {
    "^": "\u0302", "ˆ": "\u0302", "˜": "\u0303", "~": "\u0303", "¯": "\u0304", "―": "\u0304", "‾": "\u0304",
    "˙": "\u0307", "→": "\u20d7", "ˇ": "\u030c", "˘": "\u0306", "¨": "\u0308",
}  # fmt: skip


def _over(parts: list[str]) -> str:
    accent = _OVER.get(parts[1].strip())
    base = parts[0].strip()
    if accent and len(base) == 1 and not combining(base):
        return normalize("NFC", base + accent)
    return f"{base}{_small(parts[1], _HIGH, '^')}"


_RENDERED: dict[str, Callable[[list[str]], str]] = {
    "msup": _raised,
    "msub": lambda parts: f"{parts[0]}{_small(parts[1], _LOW, '_')}",
    "msubsup": lambda parts: _raised([f"{parts[0]}{_small(parts[1], _LOW, '_')}", parts[2] if len(parts) > 2 else ""]),
    "mfrac": lambda parts: f"{_grouped(parts[0])}/{_grouped(parts[1])}",
    "mroot": lambda parts: f"{_small(parts[1], _HIGH, '^')}√{_grouped(parts[0])}",
    "mover": _over,
    "munder": lambda parts: f"{parts[0]}{_small(parts[1], _LOW, '_')}",
    "munderover": lambda parts: (
        f"{parts[0]}{_small(parts[1], _LOW, '_')}{_small(parts[2] if len(parts) > 2 else '', _HIGH, '^')}"
    ),
}
