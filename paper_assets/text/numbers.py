"""Write numbers for readers, so that page, terminal, digest and explanations show the same one (SPEC G17c)."""


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun: 1 paper, 2 papers; `plural` only for an irregular one."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def percent(share: float) -> str:
    """Format a probability or similarity: 83 %; a probability is never shown as certain."""
    return f"{min(max(round(100 * share), 1), 99)} %"
