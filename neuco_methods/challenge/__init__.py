"""The embeddings that were handed in to the 2025 Embed2Scale challenge, as files with public checksums."""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Method, Remote

# Git LFS objects: this address gives the file itself, raw.githubusercontent.com only a pointer to it.
BASE = "https://media.githubusercontent.com/media/embed2scale/NeuCo-Bench/main/data/"
DATASET = "ssl4eo_s12_downstream"

# id → title, file, sha256, bytes, baseline, a word on what it is.
ENTRIES = {
    "challenge_404": (
        "404 Embedding Not Found",
        "404_Embedding_Not_Found_eval_final_submission.csv",
        "df16cd87a96fa550ff647b34a8949388bec07d6b270c8e5ef941725133a1046f",
        133028192,
        "First in the challenge's test phase.",
    ),
    "challenge_kth": (
        "KTH and Friends",
        "KTH_and_Friends_eval_final_submission.csv",
        "3e800b9e5ca3755a00a934e7262e96b967a66849fe4cf9e7bb8a37dad6caf463",
        61426375,
        "Second in the challenge's test phase.",
    ),
    "challenge_ai4g": (
        "AI4G Intern Squad",
        "AI4G_intern_squad_eval_final_submission.csv",
        "c78f9c4f7b794d7da89a315d9a2b1d35b03bb6c8742b6cf52d6a2066e6cfd6f2",
        91817778,
        "Fourth in the challenge's test phase; no training.",
    ),
    "challenge_baseline_mean": (
        "Challenge baseline, mean",
        "baseline_mean_embeddings_eval.csv",
        "e705368cc9f1a8a73635165f17619eacd56f971bfedcc918fe04068360ef7651",
        90140926,
        "The organisers' averaging baseline.",
    ),
    "challenge_baseline_random": (
        "Challenge baseline, random",
        "baseline_random_embeddings_eval.csv",
        "5e7ba9f40846d8675a4f33d0986b847b55dedb2c2cad5c316e417dfcd8531a59",
        163582298,
        "The organisers' random baseline.",
    ),
}


@hookimpl
def neuco_methods() -> Iterator[Method]:
    for name, (title, file, sha256, size, words) in ENTRIES.items():
        yield Method(
            id=name,
            title=title,
            description=f"{words} 8,111 evaluation samples.",
            license="LicenseRef-unknown",
            citation="Embed2Scale challenge, CVPR EarthVision 2025; NeuCo-Bench, arXiv:2510.17914",
            tags=("challenge-2025",),
            files={DATASET: Remote(BASE + file, sha256=sha256, size=size)},
            baseline=name.startswith("challenge_baseline"),
        )
