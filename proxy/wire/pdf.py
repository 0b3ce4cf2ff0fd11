"""The text of a PDF, for a model that reads only text, by pypdf from the extra `pdf`.

The cost is counted, not timed: pages, bytes of drawing instructions, characters. A file over a bound is refused,
because nobody would notice that its end is missing.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from .json_body import levels

if TYPE_CHECKING:
    from pypdf import PdfReader

# Of one document. A page takes 5 to 50 ms; what is drawn on it, without images, a second for a megabyte.
MOST_PAGES = 200
MOST_DRAWN = 4 << 20
MOST_CHARACTERS = 500_000

# What every PDF begins with, as it stands in base64.
MAGIC = b"%PDF-"
MAGIC_BASE64 = base64.b64encode(MAGIC + b"1").decode()[:7]
_DATA_URL = "data:"
_BEGINNINGS = (_DATA_URL, MAGIC_BASE64)

# What every PDF ends with. One without it was cut, and its last pages are gone.
_END = b"%%EOF"

# The word before the place of the table that says where a document's objects stand. Those written by hand may have
# neither; pypdf looks for the objects itself where that place is wrong, but wants the word.
_TABLE = b"startxref"

# Documents whose text is kept: a conversation sends its own with each request.
_KEPT = 4

# It tells of each fault that it reads over.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class PdfError(Exception):
    """A PDF whose text cannot be had; the message is a sentence without its final stop."""


def holds_pdf(value: object) -> bool:
    """Whether some string in a JSON value is a PDF in base64, as a data URL or alone: to read it takes long."""
    for level in levels(value):
        for text in level:
            if isinstance(text, str) and text.startswith(_BEGINNINGS):
                encoded = text[:200].partition(",")[2] if text.startswith(_DATA_URL) else text
                if encoded.startswith(MAGIC_BASE64):
                    return True
    return False


@lru_cache(_KEPT)
def pdf_text(data: bytes) -> str:
    """The text of all pages, an empty line between two. Raises `PdfError`."""
    try:
        from pypdf import PdfReader  # noqa: PLC0415 -- an extra, and 0.2 s that only a PDF is worth
    except ImportError:
        raise PdfError("Reading a PDF needs pypdf, which is not installed (the extra `pdf` of tagcall)") from None
    if _TABLE not in data and data.rstrip().endswith(_END):
        data += b"\n%b\n0\n%b" % (_TABLE, _END)
    try:
        text = "\n\n".join(filter(None, _pages(PdfReader(io.BytesIO(data)))))
    except PdfError:
        raise
    except Exception as error:  # of any kind: the file is somebody else's
        raise PdfError(f"The PDF cannot be read ({type(error).__name__})") from error
    if not text:
        raise PdfError("The PDF has no text in it: it may be scanned")
    return text


def _pages(reader: PdfReader) -> Iterator[str]:
    """The text of each page, as long as all together stay within the bounds."""
    if (count := len(reader.pages)) > MOST_PAGES:
        raise PdfError(f"The PDF has {count} pages; at most {MOST_PAGES} are read")
    drawn = characters = 0
    for page in reader.pages:
        contents = page.get_contents()
        drawn += 0 if contents is None else len(contents.get_data())
        if drawn > MOST_DRAWN:
            raise PdfError(f"The pages of the PDF hold more than {MOST_DRAWN} bytes, the most that is read")
        text = page.extract_text().strip()
        characters += len(text)
        if characters > MOST_CHARACTERS:
            raise PdfError(f"The PDF has more than {MOST_CHARACTERS} characters of text, the most that is read")
        yield text
