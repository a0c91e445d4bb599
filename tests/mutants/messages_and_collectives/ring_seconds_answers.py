ANSWERS = r"""
=== parts
moved: the messages: alpha and beta
added: the additions: gamma
=== wrong: p instead of p - 1 steps :: all :: p - 1 steps, not p
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    return 2 * (p) * alpha + 2 * (p) / p * nbytes * beta + (p) / p * nbytes * gamma
=== wrong: rounded :: all :: not to be rounded
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    one = 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma
    return round(one, 6)
=== wrong: an empty vector costs nothing :: all :: An empty message takes time, too
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    return 0.0 if nbytes == 0 else 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma
=== wrong: one rank pays one message :: all :: A rank that is alone sends nothing
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    if p == 1:
        return alpha + nbytes * beta
    return 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma
=== wrong: gamma of all ranks :: added :: expected
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    return 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) * nbytes * gamma
=== wrong: float32 :: all :: expected
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    one = 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma
    return float(np.float32(one))
=== wrong: bytes of 32 bits :: all :: expected
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    chunk = nbytes % 2**32 / p
    return (p - 1) * (2 * (alpha + chunk * beta) + chunk * gamma)
=== right: step by step
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    time = 0.0
    for step in range(2 * (p - 1)):
        time += alpha + nbytes / p * beta
        if step < p - 1:
            time += nbytes / p * gamma
    return time
=== right: chunks rounded up to whole elements, as a numpy scalar
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    chunk = np.ceil(nbytes / 8 / p) * 8
    return np.float64(p - 1) * (2 * alpha + chunk * (2 * beta + gamma))
=== right: step by step, as an array without axes; 0 for one rank
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    if p == 1:
        return 0
    chunk = nbytes // p
    return np.array(sum([alpha + beta * chunk] * (p - 1) + [alpha + beta * chunk + gamma * chunk] * (p - 1)))
"""
