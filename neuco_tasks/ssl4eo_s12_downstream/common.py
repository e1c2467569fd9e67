"""What the dataset and its eleven tasks share."""

from __future__ import annotations

from neuco_core import Baseline, Remote, Task

DATASET = "ssl4eo_s12_downstream"
HOME = "https://huggingface.co/datasets/embed2scale/SSL4EO-S12-downstream"
LICENSE = "CC-BY-4.0"
CITATION = (
    "Vinge, R., Wittmann, I., Schneider, J., Marszalek, M., Gilch, L., Brunschwiler, T. and Albrecht, C. M. (2025): "
    "NeuCo-Bench: A Novel Benchmark Framework for Neural Embeddings in Earth Observation, arXiv:2510.17914"
)
CUBES_CITATION = (
    "Blumenstiel, B., Braham, N. A. A., Albrecht, C. M., Maurogiovanni, S. and Fraccaro, P. (2025): "
    "SSL4EOS12 v1.1 - A Multimodal, Multiseasonal Dataset for Pretraining, arXiv:2503.00168"
)
# Made like these, of the same sensors and by some of the same people, and meant for models that were trained on them.
# Nobody has compared the places, so an overlap is possible and not known.
RELATED = ("SSL4EO-S12", "SSL4EO-S12 v1.1")
TAGS = ("earth-observation", "real", "ssl4eo-s12")

SEASONS = ("spring", "summer", "fall", "winter")
L1C = ("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B8A", "B09", "B10", "B11", "B12")
BANDS = ("s1/VV", "s1/VH", *(f"s2l1c/{b}" for b in L1C), *(f"s2l2a/{b}" for b in L1C if b != "B10"))


def ssl4eo_task(
    task_id: str,
    *,
    title: str,
    description: str,
    files: tuple[str, ...],
    metric: str,
    tags: tuple[str, ...],
    kind: str = "regression",
    unit: str = "",
    r2: float | None = None,
    control: bool = False,
) -> Task:
    """A task of this dataset. ``files`` is its label file in every spelling; ``r2`` is the paper's baseline."""
    return Task(
        id=task_id,
        title=title,
        description=description,
        dataset=DATASET,
        kind=kind,
        metric=metric,
        unit=unit,
        source=_labels(*files),
        license=LICENSE,
        citation=CITATION,
        tags=(*TAGS, *tags),
        baseline=None if r2 is None else _paper_baseline(r2),
        control=control,
    )


def _labels(file: str, *other_spellings: str) -> Remote:
    """A published label file. Its hash is not published, so it stays unpinned until somebody with a network pins it."""
    folder = "hf://datasets/embed2scale/SSL4EO-S12-downstream@main/labels/"
    return Remote(folder + file, mirrors=tuple(folder + name for name in other_spellings))


def _paper_baseline(r2: float) -> Baseline:
    """The paper's R² of the averaging baseline.

    The tolerance is wide on purpose: at this learning rate the probe has not converged, so its R² follows the
    scale of the embedding, and it is not verified that bands are scaled here as they were there. A wrong file shows.
    """
    return Baseline(
        method="averaging",
        score=r2,
        tolerance=round(0.1 + 0.25 * abs(r2), 3),
        protocol="neuco-2025+k=50,lr=0.0001",
        source="NeuCo-Bench paper, Table 4",
    )
