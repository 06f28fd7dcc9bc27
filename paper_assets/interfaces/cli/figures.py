"""How a figure of an evaluation is written in a table."""

from paper_assets.evaluation.metrics import Comparison, Mean


def number(value: float) -> str:
    """Three decimals at most; a dash for what is no number."""
    return "–" if value != value else f"{value:.3f}".rstrip("0").rstrip(".")


def interval(mean: Mean) -> str:
    """A metric with its interval; a dash where it applies to no query of the set."""
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" if mean.queries else "–"


def difference(pair: Comparison) -> str:
    """A difference with its interval; a dash where the metric applies to no query of the set."""
    return f"{pair.difference:+.3f} [{pair.low:+.3f}, {pair.high:+.3f}]" if applies(pair) else "–"


def applies(pair: Comparison) -> bool:
    """Whether the metric applies to any query of the set."""
    return bool(pair.better + pair.worse + pair.equal)
