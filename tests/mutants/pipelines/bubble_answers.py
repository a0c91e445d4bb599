ANSWERS = r"""
=== parts
ideal: relative to the ideal time
total: relative to the total time
=== wrong: that of the ideal time for both :: total :: This is the bubble of the ideal time
def bubble(K, M, v):
    return (K - 1) / (v * M), (K - 1) / (v * M)
=== wrong: that of the total time for both :: ideal :: This is the bubble of the total time
def bubble(K, M, v):
    return (K - 1) / (v * M + K - 1), (K - 1) / (v * M + K - 1)
=== wrong: v divides the number of the total time as a whole :: total :: M + (K - 1) / v
def bubble(K, M, v):
    return (K - 1) / (v * M), (K - 1) / (M + K - 1) / v
=== wrong: rounded down :: all :: expected
def bubble(K, M, v):
    return (K - 1) // (v * M), (K - 1) // (v * M + K - 1)
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
