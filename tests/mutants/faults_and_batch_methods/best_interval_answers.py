ANSWERS = r"""
=== parts
fast: the best interval, writing takes little time
slow: the best interval, writing takes long
goodput: goodput
=== base
import math
def best_interval(nodes, mtbf, write, restart):
    M = mtbf / nodes
    def share(tau):
        return tau / (M * math.exp(restart / M) * (math.exp((tau + write) / M) - 1))
    tau = max((M * k / 10_000 for k in range(1, 10_001)), key=share)
    return tau, share(tau)
=== wrong: Young's interval :: slow :: This is Young's formula
-    tau = max((M * k / 10_000 for k in range(1, 10_001)), key=share)
+    tau = math.sqrt(2 * write * M)
=== wrong: Daly's interval of first order :: slow, goodput :: expected an interval of more than 0
+    tau = math.sqrt(2 * write * M) - write
=== wrong: Daly's interval of first order, at least a second :: slow :: with the best one
+    tau = max(1.0, math.sqrt(2 * write * M) - write)
=== wrong: Young's interval with the restart :: slow :: with the best one
+    tau = math.sqrt(2 * write * (M + restart))
=== wrong: Young's interval without the 2 :: fast, slow :: with the best one
+    tau = math.sqrt(write * M)
=== wrong: Young's interval for a single machine :: fast, slow :: with the best one
+    tau = math.sqrt(2 * write * mtbf)
=== wrong: the mean time between failures :: fast, slow :: This is the mean time between failures
+    tau = M
=== wrong: the writing is in the interval :: slow :: does not contain the writing
+    tau = max((M * k / 10_000 for k in range(1, 10_001)), key=share) + write
=== wrong: a coarse search :: fast, slow :: with the best one
+    tau = max((M * k / 3 for k in range(1, 4)), key=share)
=== wrong: always an hour :: fast, slow :: with the best one
+    tau = 3600.0
=== wrong: failures are rare :: slow, goodput :: with the best one
-        return tau / (M * math.exp(restart / M) * (math.exp((tau + write) / M) - 1))
+        return 1 - write / tau - tau / (2 * M)
=== wrong: without the restart :: goodput :: After each failure, the restart takes time
+        return tau / (M * (math.exp((tau + write) / M) - 1))
=== wrong: no failure during a restart :: goodput :: Failures come during a restart
+        return tau / ((M + restart) * (math.exp((tau + write) / M) - 1))
=== wrong: no failure during the writing :: slow, goodput :: with the best one
+        return tau / (M * math.exp(restart / M) * (math.exp(tau / M) - 1) + write)
=== wrong: writing is useful :: all :: with the best one
+        return (tau + write) / (M * math.exp(restart / M) * (math.exp((tau + write) / M) - 1))
=== wrong: the restart in each interval :: all :: with the best one
+        return tau / (M * (math.exp((tau + write + restart) / M) - 1))
=== wrong: of one machine :: fast, slow, goodput :: with the best one
-    M = mtbf / nodes
+    M = mtbf
=== wrong: the machines fail one after the other :: fast, slow, goodput :: with the best one
+    M = mtbf * nodes
=== wrong: the time for a second of work :: goodput :: the work over the time
-    return tau, share(tau)
+    return tau, 1 / share(tau)
=== wrong: percent :: goodput :: a share of 1
+    return tau, 100 * share(tau)
=== wrong: rounded :: goodput :: expected
+    return tau, round(share(tau), 4)
=== wrong: the goodput of another interval :: goodput :: expected
+    return tau, share(M / 2)
=== wrong: the goodput alone :: all :: expected a pair
+    return share(tau)
=== wrong: the wrong way round :: fast, slow, goodput :: with the best one
+    return share(tau), tau
=== wrong: the interval with the writing :: slow, goodput :: does not contain the writing
+    return tau + write, share(tau)
=== wrong: no interval :: all :: expected an interval
+    return None, share(tau)
=== right: Daly's formula of higher order
def best_interval(nodes, mtbf, write, restart):
    M = np.float64(mtbf) / nodes
    q = np.sqrt(write / (2 * M))
    tau = np.sqrt(2 * write * M) * (1 + q / 3 + q**2 / 9) - write if write < 2 * M else M
    return np.array([tau, tau * np.exp(-restart / M) / M / np.expm1((tau + write) / M)])
=== right: the root of the derivative, by iteration to a fixed point
import math
def best_interval(nodes, mtbf, write, restart):
    M = mtbf / nodes
    u = 1.0
    for _ in range(20_000):
        u = 1 - math.exp(-(u + write / M))
    mean = M * math.exp(restart / M) * math.expm1(u + write / M)
    return [u * M, u * M / mean]
"""
