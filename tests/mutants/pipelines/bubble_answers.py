"""Known answers to `bubble`."""

EXERCISE = "bubble"
PARTS = {
    "ideal": "relative to the ideal time",
    "total": "relative to the total time",
}

ANSWERS = r"""
=== wrong: that of the ideal time for both :: total :: This is the bubble of the ideal time
def bubble(K, M, v):
    return (K - 1) / (v * M), (K - 1) / (v * M)
=== wrong: that of the total time for both :: ideal :: This is the bubble of the total time
def bubble(K, M, v):
    return (K - 1) / (v * M + K - 1), (K - 1) / (v * M + K - 1)
=== wrong: the other way round :: all :: This is the bubble of the total time
def bubble(K, M, v):
    return (K - 1) / (v * M + K - 1), (K - 1) / (v * M)
=== wrong: v is forgotten :: all :: only a v-th
def bubble(K, M, v):
    return (K - 1) / M, (K - 1) / (M + K - 1)
=== wrong: v divides the number of the total time as a whole :: total :: M + (K - 1) / v
def bubble(K, M, v):
    return (K - 1) / (v * M), (K - 1) / (M + K - 1) / v
=== wrong: K instead of K - 1 :: all :: K - 1, not K
def bubble(K, M, v):
    return K / (v * M), K / (v * M + K)
=== wrong: v makes the bubble larger :: all :: fewer, not more
def bubble(K, M, v):
    return (K - 1) * v / M, (K - 1) * v / (M + (K - 1) * v)
=== wrong: the share of computing :: total :: in which a stage computes
def bubble(K, M, v):
    return (K - 1) / (v * M), v * M / (v * M + K - 1)
=== wrong: waiting counted twice :: all :: is both together
def bubble(K, M, v):
    return 2 * (K - 1) / (v * M), 2 * (K - 1) / (v * M + 2 * (K - 1))
=== wrong: K and M exchanged :: all :: the other way round
def bubble(K, M, v):
    return (M - 1) / (v * K), (M - 1) / (v * K + M - 1)
=== wrong: in percent :: all :: in percent
def bubble(K, M, v):
    return 100 * (K - 1) / (v * M), 100 * (K - 1) / (v * M + K - 1)
=== wrong: rounded down :: all :: expected
def bubble(K, M, v):
    return (K - 1) // (v * M), (K - 1) // (v * M + K - 1)
=== wrong: v K stages :: all :: are still K stages
def bubble(K, M, v):
    return (v * K - 1) / M, (v * K - 1) / (M + v * K - 1)
=== wrong: rounded :: all :: expected
def bubble(K, M, v):
    return round((K - 1) / (v * M), 2), round((K - 1) / (v * M + K - 1), 2)
=== wrong: one number :: all :: expected a pair
def bubble(K, M, v):
    return (K - 1) / (v * M)
=== wrong: fractions :: all :: a Fraction
def bubble(K, M, v):
    return [__import__('fractions').Fraction(K - 1, v * M)] * 2
=== right: from seconds, as fractions
def bubble(K, M, v):
    from fractions import Fraction
    computing, idle = Fraction(M), Fraction(K - 1, v)
    return [float(idle / computing), float(idle / (computing + idle))]
=== right: one convention from the other
def bubble(K, M, v):
    of_ideal = np.float64(K - 1) / v / M
    return of_ideal, of_ideal / (1 + of_ideal)
=== right: an array
def bubble(K, M, v):
    idle = (K - 1) / v
    return idle / np.array([M, M + idle])
"""
