"""What the evaluation of a submission ends with: one part for its team, one for the hosts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Code: TypeAlias = Literal["scored", "format", "ids", "size", "quota", "closed", "failed"]
# Files that are no embeddings of the right ids cost no quota. Whatever was scored, or failed at that, does: else a
# failure that depends on labels could be asked for without end.
UNREAD: tuple[Code, ...] = ("format", "ids")

# All that a team is ever told beside the numbers: a sentence made anew could carry a label out.
MESSAGES = {
    "scored": "Your submission was scored.",
    "format": "Your file could not be read as embeddings. Check it with: neuco challenge check FILE --ids IDS",
    "ids": "The ids of your file are not those of the challenge. Check it with: neuco challenge check FILE --ids IDS",
    "size": "Your file is larger than the challenge allows.",
    "quota": "You have no submissions left in this phase today, or in all.",
    "closed": "The phase is not open.",
    "failed": "Your submission could not be scored. The hosts can see why.",
}


@dataclass(frozen=True)
class Outcome:
    """``code`` is a key of ``MESSAGES``; ``feedback`` what the rules let the team see, such as ``{"mean_q": 12.3}``.

    ``detail`` and ``scores`` (Q by task) are the hosts': they are kept, and never leave with the feedback.
    """

    code: Code
    feedback: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""

    @property
    def finished(self) -> bool:
        """Whether there is a score."""
        return self.code == "scored"

    @property
    def message(self) -> str:
        """The sentence for the team."""
        return MESSAGES[self.code]
