"""Expert parallelism: ranks divide the experts of every mixture, and send each token to the rank of its expert.

    exchange   an all-to-all of the tokens and back, differentiable
    layer      a mixture of experts of which this rank has some
    gradients  sums over the replicas: of the experts along "dp", of all else along "dp" and "ep"
    chunks     passes of a rank without samples, which computes the tokens of the others

`parallel.Hybrid(ep=4)`, or `minidl train --plan dp=2,ep=4`, puts them together.
"""

from minidl.parallel.experts.exchange import dispatched, dispatched_bytes, returned
from minidl.parallel.experts.layer import ExpertParallel

__all__ = ["ExpertParallel", "dispatched", "dispatched_bytes", "returned"]
