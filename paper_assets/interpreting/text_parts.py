"""A long text in parts that each fit a bound, cut where a reader would pause. Pure."""

_PAUSES = (b"\n\n", b".\n", b". ", b"\n", b" ")


def parts_of(text: str, *, most_bytes: int) -> list[str]:
    """The text in order, in parts of at most `most_bytes` (from 4) UTF-8 bytes; only white space is lost at the cuts.

    A part ends at the last paragraph, sentence, line or word that leaves it at least half full, in this order.
    """
    data = text.strip().encode("utf-8", "replace")
    parts: list[str] = []
    start = 0
    while start < len(data):
        end = start + most_bytes
        if end < len(data):
            end = _cut(data, start, end)
        part = data[start:end].decode("utf-8").strip()
        parts += [part] if part else []
        start = end
    return parts


def _cut(data: bytes, start: int, end: int) -> int:
    for pause in _PAUSES:
        found = data.rfind(pause, start + (end - start) // 2, end)
        if found >= 0:
            return found + len(pause)
    while data[end] & 0b1100_0000 == 0b1000_0000:  # never inside a character
        end -= 1
    return end
