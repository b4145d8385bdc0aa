"""The papers, by the keys that OpenDP's documentation uses for them."""

from __future__ import annotations

REFERENCES = {
    "AP23": (
        "A Smooth Binary Mechanism for Efficient Private Continual Observation",
        "https://arxiv.org/abs/2306.09666",
    ),
    "BBNS19": (
        "Towards Instance-Optimal Private Query Release",
        "https://arxiv.org/abs/1811.03763",
    ),
    "BBGHS20": (
        "Hypothesis Testing Interpretations and Renyi Differential Privacy",
        "https://arxiv.org/abs/1905.09982",
    ),
    "BDRS18": (
        "Composable and Versatile Privacy via Truncated CDP",
        "https://doi.org/10.1145/3188745.3188946",
    ),
    "BS16": (
        "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
        "https://arxiv.org/abs/1605.02065",
    ),
    "CKS20": (
        "The Discrete Gaussian for Differential Privacy",
        "https://arxiv.org/abs/2004.00010",
    ),
    "CSS11": (
        "Private and Continual Release of Statistics",
        "https://doi.org/10.1145/2043621.2043626",
    ),
    "DNPR10": (
        "Differential Privacy under Continual Observation",
        "https://doi.org/10.1145/1806689.1806787",
    ),
    "DR14": (
        "The Algorithmic Foundations of Differential Privacy",
        "https://doi.org/10.1561/0400000042",
    ),
    "DRS22": (
        "Gaussian Differential Privacy",
        "https://arxiv.org/abs/1905.02383",
    ),
    "FHU23": (
        "Constant Matters: Fine-Grained Complexity of Differentially Private Continual Observation",
        "https://arxiv.org/abs/2202.11205",
    ),
    "FZ21": (
        "Individual Privacy Accounting via a Renyi Filter",
        "https://arxiv.org/abs/2008.11193",
    ),
    "HM25": (
        "Exact zCDP Characterizations for Fundamental Differentially Private Mechanisms",
        "https://arxiv.org/abs/2510.25746",
    ),
    "HR10": (
        "A Multiplicative Weights Mechanism for Privacy-Preserving Data Analysis",
        "https://doi.org/10.1109/FOCS.2010.85",
    ),
    "HSV25": (
        "Concurrent Composition for Differentially Private Continual Mechanisms",
        "https://arxiv.org/abs/2411.03299",
    ),
    "HSTVVXZ23": (
        "Concurrent Composition for Interactive Differential Privacy "
        "with Adaptive Privacy-Loss Parameters",
        "https://arxiv.org/abs/2309.05901",
    ),
    "KOV15": (
        "The Composition Theorem for Differential Privacy",
        "https://arxiv.org/abs/1311.0776",
    ),
    "KTH22": (
        "Individual Privacy Accounting with Gaussian Differential Privacy",
        "https://arxiv.org/abs/2209.15596",
    ),
    "LSL17": (
        "Understanding the Sparse Vector Technique for Differential Privacy",
        "https://arxiv.org/abs/1603.01699",
    ),
    "LW22": (
        "Composition Theorems for Interactive Differential Privacy",
        "https://arxiv.org/abs/2207.09397",
    ),
    "Mir17": (
        "Renyi Differential Privacy",
        "https://arxiv.org/abs/1702.07476",
    ),
    "MV16": (
        "The Complexity of Computing the Optimal Composition of Differential Privacy",
        "https://arxiv.org/abs/1507.03113",
    ),
    "NTZ13": (
        "The Geometry of Differential Privacy: the Sparse and Approximate Cases",
        "https://arxiv.org/abs/1212.0297",
    ),
    "RHLMTL26": (
        "Privacy Filters are Captured by Residues",
        "https://arxiv.org/abs/2602.15815",
    ),
    "RRUV21": (
        "Privacy Odometers and Filters: Pay-as-you-Go Composition",
        "https://arxiv.org/abs/1605.08294",
    ),
    "ST22": (
        "Fully Adaptive Composition for Gaussian Differential Privacy",
        "https://arxiv.org/abs/2210.17520",
    ),
    "Ste24": (
        "Tight RDP & zCDP Bounds from Pure DP",
        "https://differentialprivacy.org/pdp-to-zcdp/",
    ),
    "TKRH26": (
        "f-Differential Privacy Filters: Validity and Approximate Solutions",
        "https://arxiv.org/abs/2602.06756",
    ),
    "VW21": (
        "Concurrent Composition of Differential Privacy",
        "https://arxiv.org/abs/2105.14427",
    ),
    "VZ23": (
        "Concurrent Composition Theorems for Differential Privacy",
        "https://arxiv.org/abs/2207.08335",
    ),
    "WRRW23": (
        "Fully Adaptive Composition in Differential Privacy",
        "https://arxiv.org/abs/2203.05481",
    ),
    "ZW20": (
        "Improving Sparse Vector Technique with Renyi Differential Privacy",
        "https://proceedings.neurips.cc/paper/2020/hash/e9bf14a419d77534105016f5ec122d62-Abstract.html",
    ),
    "ZDW22": (
        "Optimal Accounting of Differential Privacy via Characteristic Function",
        "https://arxiv.org/abs/2106.08567",
    ),
}


def cite(key: str, where: str = "") -> str:
    """Render a citation such as ``[VW21, Theorem 1.5] https://...``."""
    _, link = REFERENCES[key]
    return f"[{key}, {where}] {link}" if where else f"[{key}] {link}"
