"""What the owner of the proxy chose for every turn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from prompts import PROFILES, PromptProfile


class CallRelease(Enum):
    """When a call leaves: once it is whole and checked, or as it is being written."""

    WHOLE = "whole"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    release: CallRelease = CallRelease.WHOLE
    profile: PromptProfile = PROFILES["frontier"]
    require_nonce: bool = False
