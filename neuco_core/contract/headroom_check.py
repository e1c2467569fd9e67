"""Whether a task has room for methods to differ: something beats a guess, and nothing cheap reaches the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import neuco_core.contract.task_checks  # noqa: F401 - this check comes after those
from neuco_core.contract.contract import Broken, Inapplicable, NoEvidence, Warn, check
from neuco_core.contract.subjects import TaskSubject
from neuco_core.contract.yardstick import standard_error
from neuco_core.errors import NeucoError
from neuco_core.specs import Method

if TYPE_CHECKING:
    from neuco_core.scoring.scorer import Score

# What anybody can see in images: mean and deviation of each band and season. One pass over the dataset, then cached.
# On each shipped task but the controls it beats a guess by at least three standard errors, which averaging does not.
PLAIN = "band_statistics"


@check(
    "task-headroom",
    "task",
    asks="the declared baseline or plain statistics of the images beat a guess by two standard errors, and neither "
    "scores above 0.99, or removes 99 % of the error that a guess makes; control tasks are exempt",
    reason="labels that the images do not tell rank methods by luck, and those that anything cheap tells rank nobody",
    cure="look whether ids, labels and images belong together; if the task is just hard, declare a baseline that beats "
    "a guess; if it is too easy, say in the card what it is for",
)
def headroom(subject: TaskSubject) -> str:
    if subject.spec.control:
        raise Inapplicable("a control task is expected to stay at chance level")
    yard, (scores, left_out) = subject.yardstick, _scores(subject)
    if not scores:
        raise NoEvidence("nothing could be tried", got=" | ".join(left_out.values()))
    reached = {name: f"{yard.show(score.mean)} ± {yard.show(standard_error(score))}" for name, score in scores.items()}
    shown = ", ".join(f"{name} {text}" for name, text in reached.items())
    for name, score in scores.items():
        if yard.better(score.mean, yard.ceiling):
            got = f"{yard.show(score.mean)} by {name}"
            raise Warn("no room for better methods", expected=f"not {yard.beyond(yard.ceiling)}", got=got)
    if any(yard.better(score.mean, yard.guess + 2 * yard.sign * standard_error(score)) for score in scores.values()):
        return f"{shown}, and {yard.show(yard.guess)} for a guess"
    expected = f"{yard.beyond(yard.guess)}, the score of a guess, by two standard errors"
    if PLAIN not in scores:  # a weak baseline alone does not prove that there is nothing to be found
        raise Warn("the only method that could be tried does not beat a guess", expected=expected, got=shown)
    raise Broken("nothing beats a guess", expected=expected, got=shown)


def _scores(subject: TaskSubject) -> tuple[dict[str, Score], dict[str, str]]:
    """The cheap methods that can be run here, each with its score; and the others with the reason."""
    declared = subject.spec.baseline
    scores: dict[str, Score] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys([declared.method, PLAIN] if declared else [PLAIN]):
        try:
            scores[name] = subject.score(subject.catalog.load(Method, name).embeddings(subject.spec.dataset))
        except NeucoError as error:
            left_out[name] = f"{name}: {error}"
    return scores, left_out
