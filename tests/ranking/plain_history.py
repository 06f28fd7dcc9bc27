"""Invented days of a profile, ranked by a plain twin of the list's rule; what a day would be with a cause undone.

The twin to which `ranking/causes.py` is compared: papers are dicts, the list is filled by loops, and a cause is undone
in what the day was made from (who is removed, which score a paper had, which options the profile had), never in the
stored rows. It shares no code with the package.
"""

import copy
import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

PARTS = ("semantic_relevance", "must_keywords", "author_trust", "institution_trust", "recency", "practicality")
WEIGHTS = {
    "general": (0.30, 0.10, 0.15, 0.10, 0.20, 0.15),
    "literature_review": (0.35, 0.10, 0.15, 0.10, 0.05, 0.25),
}
INTERESTS = ("ponds", "frogs", "rain")


@dataclass
class Options:
    """What a profile asks for. `taste` 0 or 1: which of its two sets of interests; `hard`: flagged papers are out."""

    top_k: int = 3
    line: float | None = 0.4
    mode: str = "balanced"
    purpose: str = "general"
    pick: bool = False
    taste: int = 0
    hard: bool = False
    code: str = "1"


@dataclass
class Day:
    """All that a day's ranking is made from."""

    as_of: date
    options: Options
    papers: dict[str, dict[str, Any]]  # of the window, by id
    removed: dict[str, str] = field(default_factory=dict)
    lanes: bool = True
    forced: tuple[str, ...] = ()  # have a lane's place in any case
    forced_pick: str | None = None
    listed: list[str] = field(default_factory=list)
    lane_places: dict[str, str] = field(default_factory=dict)
    picked: str | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def header(self) -> dict[str, Any]:
        options = self.options
        return {
            "as_of": self.as_of.isoformat(),
            "profile_hash": f"{options.taste} {options.hard}",
            "top_k": options.top_k,
            "line": options.line,
            "ranking_mode": options.mode,
            "purpose": options.purpose,
            "include_contrastive": options.pick,
            "contrastive_type": "method",
            "weights": dict(zip(PARTS, WEIGHTS[options.purpose], strict=True)),
            "code_version": options.code,
            "lane_places": self.lane_places,
            "served": list(INTERESTS) if self.lanes else [],
        }


def least_of(options: Options) -> float:
    """The probability from which on a paper serves an interest."""
    return 0.4 if options.line is None else options.line


def probability(paper: dict[str, Any], options: Options) -> float:
    """The language model's verdict, or that no interest is missed."""
    if paper["verdict"] is not None:
        return float(paper["verdict"])
    return float(max(paper["serves"][options.taste]))


def final(paper: dict[str, Any], options: Options) -> float:
    total = 0.0
    for weight, name in zip(WEIGHTS[options.purpose], PARTS, strict=True):
        total += weight * (probability(paper, options) if name == "semantic_relevance" else paper[name])
    return total + paper["soft_penalty"]


def ranked(day: Day) -> Day:
    """The day with its list, lane places, pick and rows."""
    options = day.options
    candidates = [each for each in day.papers.values() if each["paper_id"] not in day.removed]

    def above(paper: dict[str, Any]) -> bool:
        return options.line is None or probability(paper, options) >= options.line

    def by_score(paper: dict[str, Any]) -> tuple[Any, ...]:
        return (-final(paper, options), -paper["day"].toordinal(), paper["paper_id"])

    def filled(places: int) -> tuple[list[dict[str, Any]], dict[str, str], int]:
        if options.line is None:
            order = sorted(candidates, key=by_score)
        else:
            upper = [each for each in candidates if above(each)]
            first = upper
            if options.mode == "balanced":
                likely = sorted(upper, key=lambda each: (-probability(each, options), *by_score(each)))
                first = likely[:places]
            tenths = {each["paper_id"]: min(int(10 * probability(each, options)), 9) for each in upper}
            order = sorted(first, key=lambda each: (-tenths[each["paper_id"]], *by_score(each)))
            rest = [each for each in upper if each not in first]
            order += sorted(rest, key=lambda each: (-tenths[each["paper_id"]], *by_score(each)))
            lower = [each for each in candidates if not above(each)]
            order += sorted(lower, key=lambda each: (-probability(each, options), *by_score(each)))
        places = min(places, sum(above(each) for each in candidates))
        inside, given = order[:places], dict[str, str]()
        least = least_of(options)

        def serves(paper: dict[str, Any], lane: int) -> bool:
            return above(paper) and paper["serves"][options.taste][lane] >= least

        for lane, interest in enumerate(INTERESTS):
            if not day.lanes or len(given) >= options.top_k // 3 or any(serves(each, lane) for each in inside):
                continue
            able = [each for each in order if serves(each, lane)]
            if not able:
                continue
            best = max(able, key=lambda each: (each["serves"][options.taste][lane], -order.index(each)))
            for leaver in reversed(inside):
                own = [number for number in range(len(INTERESTS)) if serves(leaver, number)]
                if all(sum(serves(each, number) for each in inside) > 1 for number in own):
                    inside = [each for each in inside if each is not leaver] + [best]
                    given.pop(leaver["paper_id"], None)
                    given[best["paper_id"]] = interest
                    break
        for each in order:
            if each["paper_id"] in day.forced and each not in inside and above(each):
                free = [other for other in inside if other["paper_id"] not in day.forced]
                inside = [other for other in inside if other is not free[-1]] + [each] if free else inside
        return (
            [each for each in order if each in inside] + [each for each in order if each not in inside],
            given,
            places,
        )

    order, given, places = filled(options.top_k - options.pick)
    picked = None
    if options.pick:
        picked = next((each for each in order[options.top_k - 1 :] if each["odd"] and above(each)), None)
        picked = next((each for each in order if each["paper_id"] == day.forced_pick), picked)
        if picked is None or options.top_k == 1:
            picked = None
            order, given, places = filled(options.top_k)
        else:
            order = [each for each in order if each is not picked]
            order.insert(options.top_k - 1, picked)
            places += 1
    rows = []
    for place, paper in enumerate(order, 1):
        parts = {name: paper[name] for name in PARTS if name != "semantic_relevance"}
        rows.append(
            {
                **parts,
                "semantic_relevance": probability(paper, options),
                "bonus": 0.0,
                "soft_penalty": paper["soft_penalty"],
                "diversity_penalty": 0.0,
                "rank": place,
                "shown": place <= places,
                "paper_id": paper["paper_id"],
                "final": final(paper, options),
                "penalty_keywords": [],
                "evaluation_method": "embedding" if paper["verdict"] is None else "embedding+llm",
                "tags": ["CONTRASTIVE_PICK"] if paper is picked else [],
                "lane": None,
                "version": paper["version"],
                "serves": [p if p >= least_of(options) else 0.0 for p in paper["serves"][options.taste]]
                if day.lanes
                else None,
            }
        )
    return Day(
        as_of=day.as_of,
        options=options,
        papers=day.papers,
        removed=day.removed,
        lanes=day.lanes,
        forced=day.forced,
        forced_pick=day.forced_pick,
        listed=[row["paper_id"] for row in rows if row["shown"]],
        lane_places=given,
        picked=picked["paper_id"] if picked else None,
        rows=rows,
    )


# What a history is made of.


def invented_paper(number: int, day: date, chance: random.Random) -> dict[str, Any]:
    def serving() -> list[float]:
        return [round(chance.choice([chance.random() * 0.4, chance.random()]), 3) for _ in INTERESTS]

    return {
        "paper_id": f"2603.{number:05d}",
        "day": day,
        "serves": [serving(), serving()],
        "verdict": None,
        "version": 1,
        "flagged": chance.random() < 0.15,
        "odd": chance.random() < 0.2,
        "must_keywords": chance.choice([0.0, 0.5, 1.0]),
        "author_trust": chance.choice([0.0, 0.0, 1.0]),
        "institution_trust": 1.0,
        "recency": 1.0,
        "practicality": chance.choice([0.0, 0.5]),
        "soft_penalty": chance.choice([0.0, 0.0, -0.15]),
    }


def history(
    chance: random.Random, *, days: int = 4, window: int = 3, each_day: int = 5, lanes: bool = True, picks: bool = True
) -> list[Day]:
    """Consecutive days of one profile, on which papers come, change and are judged, and the profile is edited.

    `lanes`, `picks`: with places for lanes, and for a contrastive pick.
    """
    first, number = date(2026, 3, 1), 0
    options = Options(
        top_k=chance.randint(1, 6),
        line=chance.choice([0.4, 0.4, 0.5, None]),
        mode=chance.choice(["balanced", "balanced", "novelty"]),
        purpose=chance.choice(list(WEIGHTS)),
        pick=picks and chance.random() < 0.3,
    )
    known: dict[str, dict[str, Any]] = {}
    found: list[Day] = []
    for as_of in (first + timedelta(days=count) for count in range(days)):
        for _ in range(chance.randint(0, 2 * each_day)):
            number += 1
            paper = invented_paper(number, as_of, chance)
            known[paper["paper_id"]] = paper
        if found:
            known = {paper_id: _a_day_later(paper, chance) for paper_id, paper in known.items()}
            options = _edited(options, chance, picks=picks)
        papers = {
            paper_id: paper
            for paper_id, paper in known.items()
            if as_of - timedelta(days=window) < paper["day"] <= as_of
        }
        shown = {paper_id for day in found for paper_id in day.listed}
        removed = {paper_id: "ALREADY_SHOWN" for paper_id in papers if paper_id in shown and chance.random() < 0.9}
        if options.hard:
            removed |= {paper_id: "BLACKLIST_KEYWORD:mud" for paper_id, paper in papers.items() if paper["flagged"]}
        day = Day(as_of=as_of, options=options, papers=copy.deepcopy(papers), removed=removed, lanes=lanes)
        found.append(ranked(day))
    return found


def _a_day_later(paper: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    paper = copy.deepcopy(paper)
    luck = chance.random()
    if luck < 0.3:  # words are weighed over the day's candidates
        paper["serves"] = [
            [min(max(p + chance.uniform(-0.004, 0.004), 0.0), 1.0) for p in one] for one in paper["serves"]
        ]
    elif luck < 0.4:
        paper["version"] += 1
        paper["serves"] = invented_paper(0, paper["day"], chance)["serves"]
    elif luck < 0.5 and paper["verdict"] is None:
        paper["verdict"] = round(chance.random(), 2)
    elif luck < 0.6:
        paper["practicality"] = chance.choice([0.0, 0.5, 0.8])
    elif luck < 0.65:
        paper["recency"] = 0.85
    return paper


def _edited(options: Options, chance: random.Random, *, picks: bool) -> Options:
    options = copy.copy(options)
    luck = chance.random()
    if luck < 0.06:
        options.top_k = chance.randint(1, 6)
    elif luck < 0.12:
        options.taste = 1 - options.taste
    elif luck < 0.18:
        options.hard = not options.hard
    elif luck < 0.24:
        options.purpose = "general" if options.purpose == "literature_review" else "literature_review"
    elif luck < 0.30 and options.line is not None:
        options.line = 0.4 if options.line == 0.5 else 0.5
    elif luck < 0.36 and picks:
        options.pick = not options.pick
    return options


# What a day would be with a cause undone.


def without(cause: Any, paper_id: str, before: Day, after: Day) -> Day:
    """The later day's inputs with that which the cause names as it was before. The list is not yet filled."""
    day = Day(
        as_of=after.as_of,
        options=after.options,
        papers=copy.deepcopy(after.papers),
        removed=dict(after.removed),
        lanes=after.lanes,
        forced=after.forced,
        forced_pick=after.forced_pick,
    )
    candidates = set(before.papers) - set(before.removed), set(after.papers) - set(after.removed)
    new = candidates[1] - candidates[0]
    match cause.kind:
        case "shown" | "removed" | "window" if paper_id in candidates[1] and paper_id not in new:
            for gone in candidates[0] - candidates[1]:
                reason = after.removed.get(gone)
                kind = "window" if reason is None else "shown" if reason == "ALREADY_SHOWN" else "removed"
                if kind == cause.kind:
                    day.papers[gone] = copy.deepcopy(before.papers[gone])
                    day.papers[gone]["serves"] = [before.papers[gone]["serves"][before.options.taste]] * 2
                    day.removed.pop(gone, None)
        case "shown" | "removed" if paper_id in new:  # no longer removed
            day.removed[paper_id] = before.removed.get(paper_id, "")
        case "new":
            del day.papers[paper_id]
        case "came":
            day.papers = {each: paper for each, paper in day.papers.items() if each == paper_id or each not in new}
        case "others":
            for each in candidates[0] & candidates[1] - {paper_id}:
                day.papers[each] = before.papers[each]
        case "lane" if paper_id in after.lane_places or set(cause.papers) & set(after.lane_places):
            day.lanes = False
            day.forced = tuple(each for each in before.lane_places if each in after.lane_places)
        case "lane":
            day.lanes = False
            day.forced = tuple(each for each in before.lane_places if each in candidates[1])
        case "pick" if before.options.pick and paper_id == before.picked:
            day.forced_pick, day.options = paper_id, copy.copy(day.options)
            day.options.pick = True
        case "pick":
            day.options = copy.copy(day.options)
            day.options.pick = False
        case "edit":
            day.options = copy.copy(before.options)
            for each in candidates[0] & candidates[1]:
                if before.options.taste != after.options.taste:
                    day.papers[each] = before.papers[each]
            for each in new & set(day.papers):  # what new papers would have been is not known: they stay as they are
                serves = day.papers[each]["serves"]
                serves[before.options.taste] = serves[after.options.taste]
            if before.options.hard != after.options.hard:
                day.removed |= {each: "edit" for each in new if each in before.removed}
        case _:
            own = day.papers[paper_id]
            names = {"semantic_relevance": ("serves", "verdict")}.get(cause.part, (cause.part,))
            for name in names:
                own[name] = before.papers[paper_id][name]
    return day
