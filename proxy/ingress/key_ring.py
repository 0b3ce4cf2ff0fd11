"""The keys of a running server: who sent one, its name elsewhere, and the digest that stands for an owner."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from ..api_keys import ApiKey


# A digest takes longer than all else that is looked at in a head, and most requests come with a key of the last ones.
@lru_cache(maxsize=64)
def digest_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class KeyRing:
    """Without a key in it any is accepted."""

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self._keys = {digest_of(each.key): each for each in keys}

    def replace(self, keys: Iterable[ApiKey]) -> None:
        """From now on these are accepted. What the others have stored waits for them."""
        self._keys = {digest_of(each.key): each for each in keys}

    def __len__(self) -> int:
        return len(self._keys)

    def accepts(self, given: str) -> bool:
        digest = digest_of(given)
        # All of them are looked at, so that the time tells nothing.
        matches = [hmac.compare_digest(digest, known) for known in self._keys]
        return any(matches)

    def of(self, owner: str) -> ApiKey | None:
        """The key of an owner, as `owner_of` names it."""
        return self._keys.get(owner)

    def name_of(self, owner: str) -> str:
        """`""` for one without a name."""
        key = self.of(owner)
        return "" if key is None else key.name
