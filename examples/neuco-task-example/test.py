"""What this package promises; run with ``pytest test.py`` after ``pip install -e .``."""

import numpy as np

from neuco_core import load_dataset, load_method, load_protocol, load_task, score


def test_the_labels_are_what_the_images_were_made_with() -> None:
    from neuco_task_example.waves import frequency

    labels = load_task("example_frequency").labels()
    assert set(labels.ids) == set(load_dataset("example").cubes().ids())
    for sample, value in zip(labels.ids, labels.values, strict=True):
        assert value == frequency(int(sample.removeprefix("wave-")))


def test_an_image_does_not_depend_on_its_neighbours() -> None:
    source = load_dataset("example").cubes()
    together = source.read(["wave-003", "wave-004"]).values[1]
    np.testing.assert_array_equal(together, source.read(["wave-004"]).values[0])


def test_the_baseline_is_met() -> None:
    task = load_task("example_frequency")
    baseline = task.baseline
    embeddings = load_method(baseline.method).embeddings(task.dataset)
    result = score(embeddings, task, load_protocol(baseline.protocol))
    assert abs(result.mean - baseline.score) <= baseline.tolerance
