"""What GEO-Bench-2 asks of a submission, as facts of its leaderboard at commit 1659ccf (Apache-2.0)."""

from __future__ import annotations

TABLE, INFO = "results_and_parameters.csv", "additional_info.json"
SOURCE = "https://github.com/The-AI-Alliance/GEO-Bench-2-Leaderboard, commit 1659ccf"
SEEDS = 5
TUNING = ("frozen", "full_ft")
# biomassters is measured as an error; what is submitted is 1 - rmse × this.
RMSE_FACTOR = 0.2537951171398163


# By column: what it holds. The spelling, with its spaces and capitals, is theirs.
TEXT, INTEGER, FLOAT = "text", "integer", "number"
COLUMNS = {
    "dataset": TEXT,
    "Metric": TEXT,
    "experiment_name": TEXT,
    "partition name": TEXT,
    "backbone": TEXT,
    "decoder": TEXT,
    "batch_size_selection": TEXT,
    "frozen_or_full_ft": TEXT,
    "early_stop_patience": INTEGER,
    "n_trials": INTEGER,
    "Seed": INTEGER,
    "data_percentages": INTEGER,
    "batch_size": INTEGER,
    "weight_decay": FLOAT,
    "lr": FLOAT,
    "test metric": FLOAT,
}
# Detectors are trained without early stopping: there is nothing to say.
MAY_BE_EMPTY = ("early_stop_patience",)
# By column: the least and the largest value, and whether the least itself is allowed.
RANGES: dict[str, tuple[int, int | None, bool]] = {
    "early_stop_patience": (0, None, True),
    "n_trials": (1, None, True),
    "Seed": (0, None, True),
    "data_percentages": (0, 100, False),
    "batch_size": (1, None, True),
    "weight_decay": (0, None, True),
    "lr": (0, None, False),
}
LIST, STRING = "a list", "a text"
# The space at the end of the second key is theirs.
KEYS = {
    "Paper Link": STRING,
    "Code Repository Link ": STRING,
    "License": STRING,
    "Number of HPO trials": STRING,
    "Additional information about submission": STRING,
    "Comments on new models in submission": STRING,
    "New model info": LIST,
}
MODEL_KEYS = ("model_display_name", "model_size", "unique_backbone_key")

JACCARD, F1, ACCURACY = "Multiclass_Jaccard_Index", "Multilabel_F1_Score", "Overall_Accuracy"
BOXES, MASKS, RMSE = "test_test_map", "test_test_segm_map", "RMSE"
# By metric: what is asked of a model.
KINDS = {
    ACCURACY: "classification",
    F1: "multilabel",
    JACCARD: "segmentation",
    RMSE: "regression",
    BOXES: "detection",
    MASKS: "detection",
}
METRICS = tuple(sorted(KINDS))
# Each dataset has one metric.
DATASETS = {
    "benv2": F1,
    "biomassters": RMSE,
    "burn_scars": JACCARD,
    "caffe": JACCARD,
    "cloudsen12": JACCARD,
    "dynamic_earthnet": JACCARD,
    "everwatch": BOXES,
    "flair2": JACCARD,
    "forestnet": ACCURACY,
    "fotw": JACCARD,
    "kuro_siwo": JACCARD,
    "nzcattle": BOXES,
    "pastis": JACCARD,
    "pastis_r": MASKS,
    "so2sat": ACCURACY,
    "spacenet2": JACCARD,
    "spacenet7": JACCARD,
    "substation": MASKS,
    "treesatai": F1,
}
# By capability: its datasets. The first one is their summary of all.
CAPABILITIES = {
    name: tuple(sorted(datasets.split()))
    for name, datasets in {
        "Core": "benv2 biomassters burn_scars cloudsen12 everwatch flair2 fotw kuro_siwo pastis spacenet7 substation "
        "treesatai",
        "Multi-Spectral-Dependent": "benv2 biomassters burn_scars cloudsen12 fotw pastis so2sat spacenet2",
        "Multi-Temporal": "biomassters dynamic_earthnet kuro_siwo pastis",
        "Pixel-wise": "biomassters burn_scars caffe cloudsen12 dynamic_earthnet flair2 fotw kuro_siwo pastis "
        "spacenet2 spacenet7",
        "Classification": "benv2 forestnet so2sat treesatai",
        "Detection (Object/Instance)": "everwatch nzcattle pastis_r substation",
        "Under 10m Resolution": "dynamic_earthnet flair2 spacenet2 spacenet7 treesatai",
        "10m and Above Resolution": "benv2 biomassters burn_scars caffe cloudsen12 forestnet fotw kuro_siwo pastis "
        "so2sat",
        "RGB/NIR": "dynamic_earthnet flair2 fotw spacenet7 treesatai",
    }.items()
}

# By backbone that the leaderboard knows: the name it shows, and the number of parameters.
MODELS = {
    "clay_v1_base": ("Clay-V1 ViT-B", "100M"),
    "convnext_large_fb_in22k": ("ConvNext-Large-ImageNet", "230M"),
    "convnext_xlarge_fb_in22k": ("ConvNext-XLarge-ImageNet", "390M"),
    "dinov3_convnext_large": ("DinoV3-ConvNext-Large-WEB", "230M"),
    "dinov3_vitl16": ("DinoV3-ViT-L-SAT", "300M"),
    "dofa_base_patch16_224": ("DOFA-ViT-B", "100M"),
    "dofa_large_patch16_224": ("DOFA-ViT 300M", "300M"),
    "prithvi_eo_v2_100": ("Prithvi-EO-V2-100", "100M"),
    "prithvi_eo_v2_300": ("Prithvi-EO-V2 300M", "300M"),
    "prithvi_eo_v2_300_tl": ("Prithvi-EO-V2 300M TL", "300M"),
    "prithvi_eo_v2_600": ("Prithvi-EO-V2 600M", "600M"),
    "prithvi_eo_v2_600_tl": ("Prithvi-EO-V2 600M TL", "600M"),
    "prithvi_vit_100": ("Prithvi-EO-V1-100", "100M"),
    "resnet101": ("Resnet101", "42M"),
    "resnet50": ("Resnet50-ImageNet", "25M"),
    "satlas_resnet50_sentinel2_si_ms_satlas": ("Satlas-Resnet50", "25M"),
    "satlas_swin_b_naip_si_rgb": ("Satlas-SwinB-Naip", "100M"),
    "satlas_swin_b_sentinel2_si_ms": ("Satlas-Swin 100M", "100M"),
    "ssl4eos12_resnet50_sentinel2_all_decur": ("Resnet50-DeCUR", "25M"),
    "ssl4eos12_resnet50_sentinel2_all_dino": ("Resnet50-DINO", "25M"),
    "ssl4eos12_resnet50_sentinel2_all_moco": ("Resnet50-MOCO", "25M"),
    "terramind_v1_base": ("TerraMind-V1-Base", "100M"),
    "terramind_v1_large": ("TerraMind-V1-Large", "300M"),
    "vit_large_patch16": ("ScaleMAE-ViT 300M", "300M"),
}
