"""The papers, by the keys that OpenDP's documentation uses for them."""

from __future__ import annotations


def _arxiv(number: str, title: str) -> tuple[str, str]:
    return title, f"https://arxiv.org/abs/{number}"


# key: title and link
REFERENCES = {
    "AP23": _arxiv(
        "2306.09666", "A Smooth Binary Mechanism for Efficient Private Continual Observation"
    ),
    "APT24": _arxiv(
        "2408.07021",
        "Improved Counting under Continual Observation with Pure Differential Privacy",
    ),
    "BBNS19": _arxiv("1811.03763", "Towards Instance-Optimal Private Query Release"),
    "BBGHS20": _arxiv(
        "1905.09982", "Hypothesis Testing Interpretations and Renyi Differential Privacy"
    ),
    "BDRS18": (
        "Composable and Versatile Privacy via Truncated CDP",
        "https://doi.org/10.1145/3188745.3188946",
    ),
    "BS16": _arxiv(
        "1605.02065",
        "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
    ),
    "BLM13": (
        "Concentration Inequalities: A Nonasymptotic Theory of Independence",
        "https://doi.org/10.1093/acprof:oso/9780199535255.001.0001",
    ),
    "CKS20": _arxiv("2004.00010", "The Discrete Gaussian for Differential Privacy"),
    "CSS11": (
        "Private and Continual Release of Statistics",
        "https://doi.org/10.1145/2043621.2043626",
    ),
    "DMPST24": _arxiv(
        "2404.16706",
        "Efficient and Near-Optimal Noise Generation for Streaming Differential Privacy",
    ),
    "DMRST22": _arxiv(
        "2202.08312",
        "Improved Differential Privacy for SGD via Optimal Private Linear Operators on Adaptive "
        "Streams",
    ),
    "DNPR10": (
        "Differential Privacy under Continual Observation",
        "https://doi.org/10.1145/1806689.1806787",
    ),
    "DR14": (
        "The Algorithmic Foundations of Differential Privacy",
        "https://doi.org/10.1561/0400000042",
    ),
    "DRS22": _arxiv("1905.02383", "Gaussian Differential Privacy"),
    "FHU23": _arxiv(
        "2202.11205",
        "Constant Matters: Fine-Grained Complexity of Differentially Private Continual Observation",
    ),
    "FZ21": _arxiv("2008.11193", "Individual Privacy Accounting via a Renyi Filter"),
    "HM25": _arxiv(
        "2510.25746",
        "Exact zCDP Characterizations for Fundamental Differentially Private Mechanisms",
    ),
    "HR10": (
        "A Multiplicative Weights Mechanism for Privacy-Preserving Data Analysis",
        "https://doi.org/10.1109/FOCS.2010.85",
    ),
    "HSV25": _arxiv(
        "2411.03299", "Concurrent Composition for Differentially Private Continual Mechanisms"
    ),
    "HSTVVXZ23": _arxiv(
        "2309.05901",
        "Concurrent Composition for Interactive Differential Privacy "
        "with Adaptive Privacy-Loss Parameters",
    ),
    "KRW24": _arxiv("2402.06701", "Privacy Profiles for Private Selection"),
    "KOV15": _arxiv("1311.0776", "The Composition Theorem for Differential Privacy"),
    "KTCGL23": _arxiv("2306.16163", "Turbo: Effective Caching in Differentially-Private Databases"),
    "KTH22": _arxiv(
        "2209.15596", "Individual Privacy Accounting with Gaussian Differential Privacy"
    ),
    "LSL17": _arxiv(
        "1603.01699", "Understanding the Sparse Vector Technique for Differential Privacy"
    ),
    "LT19": _arxiv("1811.07971", "Private Selection from Private Candidates"),
    "LW22": _arxiv("2207.09397", "Composition Theorems for Interactive Differential Privacy"),
    "Mir17": _arxiv("1702.07476", "Renyi Differential Privacy"),
    "MV16": _arxiv(
        "1507.03113", "The Complexity of Computing the Optimal Composition of Differential Privacy"
    ),
    "NTZ13": _arxiv(
        "1212.0297", "The Geometry of Differential Privacy: the Sparse and Approximate Cases"
    ),
    "PS22": _arxiv("2110.03620", "Hyperparameter Tuning with Renyi Differential Privacy"),
    "RHLMTL26": _arxiv("2602.15815", "Privacy Filters are Captured by Residues"),
    "RRUV21": _arxiv("1605.08294", "Privacy Odometers and Filters: Pay-as-you-Go Composition"),
    "Sid67": (
        "Rectangular Confidence Regions for the Means of Multivariate Normal Distributions",
        "https://doi.org/10.1080/01621459.1967.10482935",
    ),
    "ST22": _arxiv("2210.17520", "Fully Adaptive Composition for Gaussian Differential Privacy"),
    "Ste24": (
        "Tight RDP & zCDP Bounds from Pure DP",
        "https://differentialprivacy.org/pdp-to-zcdp/",
    ),
    "TCCCGCCGLT25": _arxiv(
        "2506.05290",
        "Beyond Per-Querier Budgets: Rigorous and Resilient Global Privacy Enforcement for the W3C "
        "Attribution API",
    ),
    "TKRH26": _arxiv(
        "2602.06756", "f-Differential Privacy Filters: Validity and Approximate Solutions"
    ),
    "TW14": (
        "The Exponentially Convergent Trapezoidal Rule",
        "https://doi.org/10.1137/130932132",
    ),
    "VW21": _arxiv("2105.14427", "Concurrent Composition of Differential Privacy"),
    "VZ23": _arxiv("2207.08335", "Concurrent Composition Theorems for Differential Privacy"),
    "WRRW23": _arxiv("2203.05481", "Fully Adaptive Composition in Differential Privacy"),
    "ZW20": (
        "Improving Sparse Vector Technique with Renyi Differential Privacy",
        "https://proceedings.neurips.cc/paper/2020/hash/e9bf14a419d77534105016f5ec122d62-Abstract.html",
    ),
    "ZDW22": _arxiv(
        "2106.08567", "Optimal Accounting of Differential Privacy via Characteristic Function"
    ),
}


def cite(key: str, where: str = "") -> str:
    """Render a citation such as ``[VW21, Theorem 1.5] https://...``."""
    _, link = REFERENCES[key]
    return f"[{key}, {where}] {link}" if where else f"[{key}] {link}"
