"""Write small real PDF files of invented text: complete, scanned, encrypted."""

from collections.abc import Sequence
from hashlib import md5

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")  # PDF 1.7, 7.6.3.3
_FILE_ID = bytes(range(16))


def pdf(*pages: str, password: str | None = None) -> bytes:
    """Write a PDF with a text layer: a page for each text, a line for each line of it.

    Any characters may occur, up to 223 different ones. With `password` the file is encrypted
    (RC4, 40 bits) and that password is needed to open it; '' needs none.
    """
    characters = sorted({character for page in pages for character in page} - {"\n"})
    codes = {character: code for code, character in enumerate(characters, 33)}  # from the first code that has a glyph
    mapping = "\n".join(
        f"<{codes[character]:02x}> <{character.encode('utf-16-be', 'surrogatepass').hex()}>" for character in characters
    )
    to_unicode = (
        "begincmap 1 begincodespacerange <00> <ff> endcodespacerange\n"
        f"{len(characters)} beginbfchar\n{mapping}\nendbfchar endcmap"
    )
    contents = []
    for page in pages:
        lines = [f"<{''.join(f'{codes[character]:02x}' for character in line)}> Tj T*" for line in page.split("\n")]
        contents.append("BT /F 10 Tf 12 TL 40 780 Td\n" + "\n".join(lines) + "\nET")
    widths = " ".join(["500"] * 256)
    font = (
        "<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding"
        f"/FirstChar 0/LastChar 255/Widths[{widths}]/ToUnicode 4 0 R>>"
    )
    return _file(
        contents, resources="/Font<</F 3 0 R>>", extra=[font.encode(), _stream(to_unicode.encode())], password=password
    )


def scanned_pdf(pages: int = 1) -> bytes:
    """Write pages that contain only a picture of 2 x 2 dots."""
    image = _stream(
        bytes([0, 255, 255, 0]), "/Type/XObject/Subtype/Image/Width 2/Height 2/ColorSpace/DeviceGray/BitsPerComponent 8"
    )
    return _file(["q 500 0 0 700 40 40 cm /I Do Q"] * pages, resources="/XObject<</I 3 0 R>>", extra=[image])


def _stream(content: bytes, entries: str = "") -> bytes:
    return f"<<{entries}/Length {len(content)}>>stream\n".encode() + content + b"\nendstream"


def _file(contents: Sequence[str], *, resources: str, extra: Sequence[bytes], password: str | None = None) -> bytes:
    """Objects: 1 catalogue, 2 tree of pages, from 3 `extra`, then for each page itself and its content."""
    first = 3 + len(extra)
    kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(contents)))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {len(contents)}/Kids[{kids}]>>".encode(), *extra]
    for at, content in enumerate(contents):
        of_page = f"/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<<{resources}>>/Contents {first + 2 * at + 1} 0 R"
        page = f"<</Type/Page{of_page}>>"
        objects += [page.encode(), _stream(content.encode())]
    encryption = ""
    if password is not None:
        owner, user, key = _keys(password.encode())
        objects = [_encrypted(entry, number, key) for number, entry in enumerate(objects, 1)]
        encryption = f"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{owner.hex()}>/U<{user.hex()}>>>"
    written = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, entry in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, entry)
    table = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = f"<</Size {len(objects) + 1}/Root 1 0 R/ID[<{_FILE_ID.hex()}><{_FILE_ID.hex()}>]{encryption}>>"
    return bytes(written + f"trailer\n{trailer}\nstartxref\n{table}\n%%EOF\n".encode())


def _keys(password: bytes) -> tuple[bytes, bytes, bytes]:
    """Owner entry, user entry and key of the standard handler, revision 2 (PDF 1.7, 7.6.3)."""
    padded = (password + _PADDING)[:32]
    owner = _rc4(md5(b"owner" + _PADDING[:27]).digest()[:5], padded)
    key = md5(padded + owner + (-4 & 0xFFFFFFFF).to_bytes(4, "little") + _FILE_ID).digest()[:5]
    return owner, _rc4(key, _PADDING), key


def _encrypted(entry: bytes, number: int, key: bytes) -> bytes:
    """Return the object with its stream encrypted, if it has one; no other object contains text."""
    head, mark, rest = entry.partition(b"stream\n")
    if not mark:
        return entry
    content = rest.removesuffix(b"\nendstream")
    object_key = md5(key + number.to_bytes(3, "little") + b"\0\0").digest()[:10]
    return head + mark + _rc4(object_key, content) + b"\nendstream"


def _rc4(key: bytes, content: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in content:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
