"""Networks of other libraries as encoders: TorchGeo, TerraTorch, timm, Hugging Face, or a plain ``torch.nn.Module``.

    from neuco_extensions.models.images import Images
    from neuco_extensions.models.network import NetworkEncoder

    encoder = NetworkEncoder(build, Images(bands=("s2l1c",), scale=10_000), pooling="mean")

``build()`` gives the network with its weights; ``timm_network`` and its like in ``libraries`` do that for a name and
a verified file. Nothing of that is imported to list methods.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import Check, Command


@hookimpl
def neuco_commands() -> Iterator[Command]:
    title = "List TorchGeo's networks for Sentinel-1 and -2"
    yield Command(id="models", title=title, command="neuco_extensions.models.command:models")


@hookimpl
def neuco_checks() -> Iterator[Check]:
    yield Check(
        id="models-library",
        noun="method",
        asks="a network of TorchGeo, TerraTorch or timm gets the bands, unit and statistics that its library declares "
        "for the weights (a warning; skipped if no parameter names them)",
        reason="statistics of another product or bands in another order cost points and leave no other trace",
        cure="take bands, scale, mean and std from the library: `neuco models` lists TorchGeo's",
        run="neuco_extensions.models.declared:library",
        essential=False,
    )
