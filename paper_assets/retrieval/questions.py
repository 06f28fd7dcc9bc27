"""The questions of a profile as plans."""

from collections.abc import Sequence

from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.profile import Profile
from paper_assets.retrieval.plan import Plan, parse_plans
from paper_assets.settings import RetrievalConfig, Settings


def categories_of(profile: Profile | None, settings: Settings) -> tuple[str, ...]:
    """The sides of a plan that names none (R1): the profile's categories, else those that are fetched."""
    own = profile.content.feed.categories if profile else None
    return tuple(dict.fromkeys(own or settings.categories))


def questions_of(profile: Profile, settings: Settings) -> tuple[Plan, ...]:
    """The plans of the profile's `questions.json`. Raises InvalidProfile naming the file, the entry and the key."""
    return _plans(profile, default_sides=categories_of(profile, settings), config=settings.retrieval)


def check_questions(profile: Profile) -> None:
    """Raises InvalidProfile if a question of the profile is no plan, naming the file, the entry and the key."""
    _plans(profile, default_sides=(), config=RetrievalConfig())


def _plans(profile: Profile, *, default_sides: Sequence[str], config: RetrievalConfig) -> tuple[Plan, ...]:
    file = profile.path / "questions.json" if profile.path else f"questions of {profile.name}"
    try:
        return parse_plans(profile.questions, source=str(file), default_sides=default_sides, config=config)
    except InvalidInput as fault:
        raise InvalidProfile(str(fault)) from None
