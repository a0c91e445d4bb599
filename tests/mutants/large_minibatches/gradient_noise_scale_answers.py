"""Answers to `gradient_noise_scale`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

SCALE = """
def gradient_noise_scale(small, large, b_small, b_large):
    s, l = (small**2).sum(axis=1), (large**2).sum(axis=1)
    s, l = s.mean(), l.mean()
    trace = (s - l) / (1 / b_small - 1 / b_large)
    squared_norm = l - trace / b_large
    return trace / squared_norm if squared_norm > 0 else np.inf
"""
MEANS = "the ratio of the two means over the draws"
EXACT = "exact, if all possible minibatches are drawn"
UNITS = "the same in every unit; infinite, if no |G|^2 is left"
ALL = (MEANS, EXACT, UNITS)


def scale(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in one line."""
    return Mutant("gradient_noise_scale", mistake, changed(SCALE, *replacements), loses, says)


MUTANTS = [
    scale(
        "the mean of the ratios",
        ALL,
        "This is the mean of the ratios of single draws",
        "    s, l = s.mean(), l.mean()\n",
        "    m = min(len(s), len(l))\n    s, l = s[:m], l[:m]\n",
        "return trace / squared_norm if squared_norm > 0 else np.inf",
        "return np.mean(trace / squared_norm)",
    ),
    scale("|G|^2 is biased", ALL, "it has tr(Sigma) / b_large of noise in it", "l - trace / b_large", "l"),
    scale("sizes swapped", ALL, "sizes were swapped", "b_small - 1 / b_large",
          "b_large - 1 / b_small", "trace / b_large", "trace / b_small"),
    scale(
        "the mean over the coordinates for tr(Sigma)",
        ALL,
        "divided by n: a trace is a sum",
        "return trace / squared_norm",
        "return trace / small.shape[1] / squared_norm",
    ),
    scale(
        "a standard deviation",
        ALL,
        "standard deviation",
        "return trace / squared_norm",
        "return (trace / squared_norm) ** 0.5",
    ),
    scale(
        "the gradients are averaged, then squared",
        ALL,
        "Square each draw",
        "(small**2).sum(axis=1), (large**2).sum(axis=1)",
        "(small.mean(axis=0) ** 2).sum(), (large.mean(axis=0) ** 2).sum()",
    ),
    scale(
        "the norms are not squared",
        ALL,
        "The norms were not squared",
        "(small**2).sum(axis=1), (large**2).sum(axis=1)",
        "np.linalg.norm(small, axis=1), np.linalg.norm(large, axis=1)",
    ),
    scale(
        "the mean norm, squared",
        ALL,
        "The norms were averaged, and then squared",
        "(small**2).sum(axis=1), (large**2).sum(axis=1)",
        "np.linalg.norm(small, axis=1), np.linalg.norm(large, axis=1)",
        "s.mean(), l.mean()",
        "s.mean() ** 2, l.mean() ** 2",
    ),
    scale("upside down", ALL, "upside down", "return trace / squared_norm", "return squared_norm / trace"),
    scale(
        "negative estimates",
        (UNITS,),
        "at 0 or below it",
        "return trace / squared_norm if squared_norm > 0 else np.inf",
        "return trace / squared_norm",
    ),
    scale("0 over 0", (UNITS,), "at 0 or below it", "squared_norm > 0", "squared_norm >= 0"),
    scale(
        "tr(Sigma) is cut off at 0", (UNITS,), "may be negative", "    squared_norm =",
        "    trace = max(trace, 0.0)\n    squared_norm ="
    ),
    scale(
        "infinite for a negative tr(Sigma)", (UNITS,), "may be negative", "squared_norm > 0", "trace / squared_norm > 0"
    ),
    scale(
        "an epsilon beside |G|^2",
        (UNITS,),
        "all multiplied by 1e-6",
        "return trace / squared_norm",
        "return trace / (squared_norm + 1e-14)",
    ),
    scale(
        "draws of the small size for both",
        ALL,
        "expected",
        "s.mean(), l.mean()",
        "s.mean(), l.sum() / len(s)",
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "gradient_noise_scale",
        "the formulas of McCandlish et al., appendix A.1",
        """
def gradient_noise_scale(small, large, b_small, b_large):
    s, l = np.einsum("dn,dn->", small, small) / len(small), np.einsum("dn,dn->", large, large) / len(large)
    g = (b_large * l - b_small * s) / (b_large - b_small)
    sigma = (s - l) * b_small * b_large / (b_large - b_small)
    return float("inf") if g <= 0 else sigma / g
""",
    ),
    Alternative(
        "gradient_noise_scale",
        "a system of two linear equations",
        """
def gradient_noise_scale(small, large, b_small, b_large):
    left = [np.mean(np.linalg.norm(g, axis=1) ** 2) for g in (small, large)]
    squared_norm, trace = np.linalg.solve([[1, 1 / b_small], [1, 1 / b_large]], left)
    return np.float64(trace / squared_norm) if squared_norm > 0 else np.array(np.inf)
""",
    ),
]
