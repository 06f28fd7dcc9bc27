"""Formulas in every view: MathML, no raw dollars, and no difference that cuts a formula in two."""

from paper_assets.interfaces.page.desk import with_mathml
from paper_assets.interfaces.page.rewrites import whole_formulas
from paper_assets.rewriting.faithfulness import marked


def test_a_difference_never_cuts_a_formula() -> None:
    before, after = "It takes $n^2$ steps and $x$.", "It takes $n^3$ steps, $x$ and 7 more."
    pieces = marked(after, before, ["7", "3"])
    whole = whole_formulas(pieces)
    assert "".join(piece.text for piece in whole) == after
    [formula] = [piece for piece in whole if "n^3" in piece.text]
    assert formula.text.strip() == "$n^3$"
    assert formula.new
    assert formula.doubtful
    shown = "".join(with_mathml(piece.text) for piece in whole)
    assert shown.count("<math") == 2
    assert "$" not in shown


def test_pieces_without_formulas_stay_as_they_are() -> None:
    pieces = marked("Roads cost 4 apples.", "Roads cost apples.", ["4"])
    assert whole_formulas(pieces) == pieces
