"""`evaluate` on a labelled set: relevance alone."""

from dataclasses import asdict
from pathlib import Path

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.labelled_set import load_labelled_set
from paper_assets.evaluation.metrics import compare, means
from paper_assets.evaluation.rankers import outcomes, shipped_set
from paper_assets.interfaces.cli.arguments import open_warehouse, read_settings
from paper_assets.interfaces.cli.figures import applies, difference, interval
from paper_assets.interfaces.cli.terminal import print_json, print_table, say
from paper_assets.interfaces.embedding import remembering_embedder
from paper_assets.settings import EvaluationConfig


def show_relevance(labelled: Path | None, names: list[str], against: str | None, *, as_json: bool) -> None:
    """How the rankers `names` do on the set (None: the shipped one), the first compared with `against`."""
    if against and len(names) != 1:
        raise InvalidInput("--against compares with exactly one --mode; give both")
    settings, judging, warehouse = read_settings(), EvaluationConfig(), open_warehouse()

    known = load_labelled_set(labelled or shipped_set())
    asked = [*names, *([against] if against else [])]
    judged = outcomes(
        known, asked, embed=remembering_embedder(settings, warehouse), scoring=settings.scoring, judging=judging
    )
    figures = {name: means(outcome, judging=judging) for name, outcome in judged.items()}
    pairs = compare(judged[against], judged[names[0]], judging=judging) if against else []
    if as_json:
        return print_json(
            {
                "set": known.name,
                "unknown": known.unknown,
                "rankers": {name: [asdict(mean) for mean in found] for name, found in figures.items()},
                "comparison": [asdict(pair) for pair in pairs],
            }
        )
    if known.unknown:
        say(f"left out: {known.unknown} judgements of documents that the set does not hold")
    metrics = [mean.metric for mean in next(iter(figures.values()))]
    print_table(
        f"{known.name}: {len(known.documents)} documents, {len(known.judged_queries)} judged queries",
        ["ranker", *metrics],
        [(name, *(interval(mean) for mean in found)) for name, found in figures.items()],
    )
    if pairs:
        print_table(
            f"{names[0]} minus {against}, paired",
            ["metric", "difference", "p", "better", "worse", "equal"],
            [
                (
                    pair.metric,
                    difference(pair),
                    f"{pair.p_value:.3f}" if applies(pair) else "–",
                    pair.better,
                    pair.worse,
                    pair.equal,
                )
                for pair in pairs
            ],
        )
