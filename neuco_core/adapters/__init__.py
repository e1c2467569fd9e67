"""Networks of other libraries as encoders: TorchGeo, TerraTorch, timm, Hugging Face, or a plain ``torch.nn.Module``.

    from neuco_core.adapters.images import Images
    from neuco_core.adapters.network import NetworkEncoder

    encoder = NetworkEncoder(build, Images(bands=("s2l1c",), scale=10_000), pooling="mean")

``build()`` gives the network with its weights; ``timm_network`` and its like in ``libraries`` do that for a name and
a verified file. Nothing here is imported to list methods.
"""
