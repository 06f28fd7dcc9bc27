"""How sending can fail: surely not taken, so that it may be tried again; or nobody knows."""

from paper_assets.errors import SourceError


class NotTaken(SourceError):
    """The other side has not taken the message; it may be sent again."""


class MayBeTaken(SourceError):
    """The message was under way when the line broke; it may have arrived, so it is not sent again by itself."""
