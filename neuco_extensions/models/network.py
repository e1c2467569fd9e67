"""A ``torch.nn.Module`` as an encoder: images in, pooled features out, brought to at most 1,024 numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from neuco_core.encoders import MAX_DIM, check_seasons
from neuco_core.errors import PluginError, UsageError
from neuco_core.versions import versioned
from neuco_extensions.models.images import BANDS, Images

if TYPE_CHECKING:
    from neuco_core.cubes.cubes import CubeBatch, CubeSource

POOLINGS = ("mean", "max", "class", "network")
REDUCTIONS = ("average", "project")


@versioned(1)
class NetworkEncoder:
    """Encodes with the network that ``build()`` gives; every argument but that one belongs into ``Method.params``.

    ``images`` says what the network gets; for one that takes several inputs, a mapping from their names. ``pooling`` is
    the ``mean`` (or ``max``) of patch tokens or of the cells of a feature map, the ``class`` token, or what the
    ``network`` itself gives. ``prefix`` is the number of tokens before those of patches, where the network does not
    say so. More than ``dim`` features become ``dim`` by ``reduction``. ``call(model, images)`` replaces how features
    are asked for.
    """

    def __init__(
        self,
        build: Callable[[], Any],
        images: Images | Mapping[str, Images],
        *,
        pooling: str = "mean",
        prefix: int | None = None,
        seasons: str = "post",
        dim: int = MAX_DIM,
        reduction: str = "average",
        call: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        check_choice("pooling", pooling, POOLINGS)
        check_choice("reduction", reduction, REDUCTIONS)
        if not 1 <= dim <= MAX_DIM:
            raise UsageError("bad parameter dim", expected=f"1 to {MAX_DIM}", got=dim)
        self.build, self.images = build, images
        self.inputs = {"": images} if isinstance(images, Images) else dict(images)
        if len({(part.view, part.size) for part in self.inputs.values()}) != 1:
            raise UsageError("inputs of one network must have one view and one size", got=repr(self.inputs))
        self.pooling, self.prefix, self.call = pooling, prefix, call or features
        self.seasons, self.dim, self.reduction = check_seasons(seasons), dim, reduction
        self.device = "cpu"

    def fit(self, source: CubeSource) -> None:
        """Load the network. It learns nothing: left in training mode, it would depend on its batches."""
        self.model = self.build().eval().requires_grad_(False).to(self.device)

    def to(self, device: str) -> None:
        self.device = device
        if hasattr(self, "model"):
            self.model.to(device)

    def encode(self, batch: CubeBatch) -> np.ndarray:
        chosen = {name: batch.pick(*part.bands) for name, part in self.inputs.items()}
        for name, part in self.inputs.items():
            part.check(chosen[name].shape[2])
        if self.device != "cpu":
            return self._rows(chosen)
        # On a processor a batch gains nothing, and one sample at a time rounds alike for every batch size.
        each = [self._rows({name: value[[at]] for name, value in chosen.items()}) for at in range(len(batch.ids))]
        return np.concatenate(each)

    def _rows(self, values: dict[str, np.ndarray]) -> np.ndarray:
        """(sample, season, band, y, x) by input to (sample, feature)."""
        tensors = {name: torch.from_numpy(np.ascontiguousarray(part)) for name, part in values.items()}
        samples = len(next(iter(values.values())))
        with torch.inference_mode():
            for name, part in tensors.items():
                part = part.to(self.device).float()
                tensors[name] = part.mean(dim=1, keepdim=True) if self.seasons == "pre" else part
            found = self._features({name: part.flatten(0, 1) for name, part in tensors.items()})
            found = found.reshape(samples, -1, found.shape[-1])
            found = found.flatten(1) if self.seasons == "concat" else found.mean(dim=1)
            return reduced(found.float().cpu().numpy(), self.dim, self.reduction)

    def _features(self, images: dict[str, Any]) -> Any:
        """(image, band, y, x) by input to (image, feature), averaged over the views of each image."""
        seen = {name: part.prepare(images[name]) for name, part in self.inputs.items()}
        views = {count for _, count in seen.values()}
        if len(views) != 1:
            raise UsageError("inputs of one network have images of different sizes", got=f"{sorted(views)} tiles")
        ready = {name: part for name, (part, _) in seen.items()}
        given = next(iter(ready.values())) if isinstance(self.images, Images) else ready
        output = self.model(given) if self.pooling == "network" else self.call(self.model, given)
        rows = pooled(last(output), self.pooling, self._prefix)
        return rows.reshape(-1, views.pop(), rows.shape[-1]).mean(dim=1)

    def _prefix(self) -> int:
        prefix = self.prefix if self.prefix is not None else prefix_tokens(self.model)
        if prefix is None:
            raise PluginError(
                "the network gives tokens and does not say how many come before those of patches",
                where=type(self.model).__name__,
                hint="Say so: NetworkEncoder(…, prefix=1) for one class token, 0 for none",
            )
        return prefix


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"bad parameter {name}", expected="one of " + ", ".join(choices), got=repr(value))


def features(model: Any, images: Any) -> Any:
    """Features before pooling and classifier: ``forward_features`` where a network has it, as timm's do."""
    return getattr(model, "forward_features", model)(images)


def last(output: Any) -> Any:
    """The tensor of what a network gives: of several layers the last, of a Hugging Face output the hidden state."""
    if isinstance(output, Mapping):
        if "last_hidden_state" not in output:
            known = ", ".join(map(str, output)) or "nothing"
            raise PluginError("the network gives several things", expected="last_hidden_state", got=known)
        return output["last_hidden_state"]
    return last(output[-1]) if isinstance(output, list | tuple) else output


def prefix_tokens(model: Any) -> int | None:
    """How many tokens come before those of patches, if the network says so: timm does, and Hugging Face's ViTs do."""
    number = getattr(model, "num_prefix_tokens", None)
    embeddings = getattr(model, "embeddings", None)
    if number is None and getattr(embeddings, "cls_token", None) is not None:
        number = 1 + (getattr(model.config, "num_register_tokens", 0) or 0)
    return None if number is None else int(number)


def pooled(output: Any, pooling: str, prefix: Callable[[], int]) -> Any:
    """Tokens (image, token, feature), or maps (image, feature, y, x), as (image, feature)."""
    if pooling == "network":
        if output.ndim != 2:
            raise PluginError("the network does not pool", expected="(image, feature)", got=tuple(output.shape))
        return output
    if output.ndim == 3:
        first = prefix()
        if pooling == "class":
            if first == 0:
                raise UsageError("the network has no class token", expected="pooling=mean or max", got=pooling)
            return output[:, 0]
        patches = output[:, first:]
        return patches.mean(dim=1) if pooling == "mean" else patches.amax(dim=1)
    if output.ndim == 4 and pooling != "class":
        return output.mean(dim=(2, 3)) if pooling == "mean" else output.amax(dim=(2, 3))
    expected = "maps (image, feature, y, x) or tokens (image, token, feature)" if output.ndim != 4 else "pooling=mean"
    hint = "pooling=network takes what the network pools by itself" if output.ndim == 2 else ""
    raise PluginError(f"no {pooling} of what the network gives", expected=expected, got=tuple(output.shape), hint=hint)


def reduced(rows: np.ndarray, dim: int, how: str) -> np.ndarray:
    """At most ``dim`` features: averages of neighbours (of pairs, from 2,048 to 1,024), or a fixed random projection.

    The projection is Gaussian, of variance 1 / ``dim``: it keeps distances on average (Johnson and Lindenstrauss).
    """
    count = rows.shape[1]
    if count <= dim:
        return rows
    if how == "average":
        edges = np.linspace(0, count, dim + 1).astype(int)
        sums = np.add.reduceat(rows.astype(np.float64), edges[:-1], axis=1)
        return np.asarray(sums / np.diff(edges), dtype=np.float32)
    matrix = np.random.RandomState(0).standard_normal((count, dim)) / np.sqrt(dim)
    # Row by row: a product of matrices may round differently for another number of rows.
    return np.stack([row @ matrix for row in rows.astype(np.float64)]).astype(np.float32)


class WithWavelengths(torch.nn.Module):
    """DOFA is told the wavelength of each band; its tokens are those after the last block."""

    num_prefix_tokens = 1

    def __init__(self, model: Any, bands: tuple[str, ...]) -> None:
        super().__init__()
        names = [band.partition("/")[2] or band for band in bands]
        unknown = [name for name in names if name not in BANDS]
        if unknown:
            raise UsageError("bad parameter bands", expected="single bands of Sentinel-1 or -2", got=unknown[0])
        self.model, self.waves = model, [BANDS[name][0] for name in names]
        self.seen = threading.local()  # several threads encode at once, each with its own images
        model.blocks[-1].register_forward_hook(lambda _, __, output: setattr(self.seen, "tokens", output))

    def forward(self, images: Any) -> Any:
        return self.model(images, self.waves)

    def forward_features(self, images: Any) -> Any:
        self.model.forward_features(images, self.waves)
        return self.seen.tokens
