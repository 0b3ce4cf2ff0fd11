"""What looks like a secret: by its own form, or by the name in front of it.

A name counts however it is written: `password=...`, `"password": "..."`, the same inside a JSON string, or in a note as
`**Password:** ...`. Only the value is replaced, so that JSON stays JSON. In doubt, a value is replaced.
"""

from __future__ import annotations

import re

# Characters of a secret that is so by no accident.
LONG = 8

# One word, or several as in the name of a column: no letter changes its case within a word, and there is no digit.
_WORD = r"[A-Za-z](?:[a-z]+|[A-Z]*)"
_WORDS = re.compile(rf"{_WORD}(?P<more>(?:[ ._-]{_WORD})*)")

# How keys begin that say whose they are, and what else is in them.
_MARKED = (
    (r"sk-", r"[\w-]{12,}"),
    (r"(?:gh[opsur]|github_pat|glpat|hf|npm|pypi|xox[abeoprs]|xapp)[_-]", r"[\w-]{16,}"),
    (r"(?:[rs]k_(?:live|test)|whsec|gsk|r8|jina|ntn|lin_api|shp(?:at|ca|pa|ss)|sbp|do[opr]_v1)_", r"[A-Za-z0-9]{16,}"),
    (r"(?:xai|pplx|csk|tvly|tvly-dev)-", r"[A-Za-z0-9]{20,}"),
    (r"(?:nvapi-|tskey-|GOCSPX-|dckr_pat_|figd_|glsa_|lsv2_[ps]t_|hvs\.|ya29\.|1//0)", r"[\w-]{20,}"),
    (r"SG\.", r"[\w-]{16,}\.[\w-]{16,}"),
    (r"\d{6,16}:AA", r"[\w-]{32,33}(?![\w-])"),
    (r"A(?:KI|SI|BI|CC)A", r"[0-9A-Z]{16}\b"),
    (r"AIza", r"[\w-]{35}"),
)

KEYS = re.compile(
    rf"\b(?:{'|'.join(begin + rest for begin, rest in _MARKED)})"
    r"|\b(?:org|proj|user)[-_](?=[A-Za-z]{0,63}\d)[A-Za-z0-9]{20,64}\b"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r"|(?<=[Bb]earer )[\w.~+/-]{12,}=*"
    r"|(?<=hooks\.slack\.com/)[a-z]{1,16}/[\w/+-]{20,}"
    r"|(?<=/api/webhooks/)\d{16,20}/[\w-]{40,}"
    r"|-----BEGIN [A-Z ]{0,32}PRIVATE KEY(?: BLOCK)?-----[^-]*+(?:-(?!----)[^-]*+)*"
    r"(?:-----END [A-Z ]{0,32}PRIVATE KEY(?: BLOCK)?-----)?"
)

_PASSWORD = "(?i:password|passwd|passphrase|passcode|pwd)"  # noqa: S105 -- a name
_NAME = rf"(?:{_PASSWORD}|(?i:secret|token|credential|(?:api|access|private|secret|account)[ _-]?key))"

# Names of members whose text is a secret, as `password`, `dbPassword`, `client_secret`.
SECRET_NAME = re.compile(rf"{_NAME}\Z")


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable of the environment holds a secret. A key may also be one to sort by, or any word at all for a
    server that asks for none.
    """
    if len(value) < LONG or not name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")):
        return False
    if not name.endswith("_KEY") or (words := _WORDS.fullmatch(value)) is None:
        return True
    return words["more"] != "" and SECRET_NAME.search(name) is not None


# Between a name and a value that stands there as it is, also in Markdown.
_BOLD = r"[*_`]{0,3}"
_COLON = rf"{_BOLD}[ \t]{{0,8}}:{_BOLD}[ \t]{{0,8}}{_BOLD}"
_EQUALS = rf"{_BOLD}[ \t]{{0,8}}=(?!=){_BOLD}[ \t]{{0,8}}{_BOLD}"
# No variable, no type, and nothing that has been taken out.
_UNLIKELY = r"(?!\$|//|\[(?:key|redacted)\]|(?i:str|string|none|null|true|false|required|optional)\b)"
_BARE = rf"{_UNLIKELY}([^\s\"'\\&<>,;`|]+(?<![.:(){{}}\[\]*_]))"

NAMED_SECRETS = (
    # "password": "...", password = '...'
    re.compile(rf"{_NAME}[\"']?\s{{0,8}}(?:=>|[:=])\s{{0,8}}\"((?:[^\"\\\n]|\\.)+)\""),
    re.compile(rf"{_NAME}[\"']?\s{{0,8}}(?:=>|[:=])\s{{0,8}}'([^'\"\\\n]+)'"),
    # The same inside a JSON string: each of its own escapes is escaped again.
    re.compile(
        rf"{_NAME}(?:\\[\"'])?[ \t]{{0,8}}(?:=>|[:=])[ \t]{{0,8}}"
        r"\\\"((?:[^\"\\\n]|\\\\(?:\\\\|\\\"|[^\"\\]))+)\\\""
    ),
    re.compile(rf"{_PASSWORD}{_COLON}{_BARE}"),
    re.compile(rf"{_NAME}{_EQUALS}{_BARE}"),
    re.compile(rf"{_NAME}{_COLON}(?=[^\s\"'\\]{{0,99}}\d)(?=[^\s\"'\\]{{8}}){_BARE}"),
    re.compile(rf"--(?:[a-z]{{1,16}}-){{0,3}}{_NAME} (?!-){_BARE}"),
    re.compile(r"(?<=://)[^\s/:@\"'\\]{0,64}:([^\s/@\"'\\]{1,256})@"),
    re.compile(r"(?i:authorization)[^\w\n]{1,8}(?i:basic) ([\w+/=-]{4,})"),
    re.compile(r"(?i:\bcookie)[\\\"']{0,4}:[ \t]{0,8}[\\\"']{0,4}([\w.!#$%&*+^~-]{1,64}=[^\r\n\"'\\]+)"),
    # What signs the address of a file that is otherwise closed.
    re.compile(r"[?&](?i:sig|signature|x-amz-signature|x-amz-credential)=([\w%+/=.-]{16,})"),
    re.compile(
        r"(?i:account_?id)[\\\"']{0,4}\s{0,8}[:=]\s{0,8}[\\\"']{0,4}([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"
    ),
)
