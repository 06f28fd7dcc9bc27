"""Write numbers for readers, so that page, terminal, digest and explanations show the same one (SPEC G17c)."""


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun: 1 paper, 2 papers; `plural` only for an irregular one."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def percent(share: float) -> str:
    """Format a probability or similarity: 83 %; a probability is never shown as certain."""
    return f"{min(max(round(100 * share), 1), 99)} %"


NOTHING_PAID = "nothing, the model had answered this before"


def cost_in_words(calls: int, tokens: int, price: float | None) -> str:
    """Format the use of a language model: calls, tokens, and money where prices are set."""
    money = "" if price is None else f", {price:.{4 if price < 0.01 else 2}f} at your prices"
    return f"{count_of(calls, 'call')}, {tokens:,} tokens{money}"
