"""ExpertGradients: the sums of a chunk's gradients over the replicas, of experts over fewer ranks than of all else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.nn import Parameter
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.plan import READERS


class ExpertGradients(GradientBuckets):
    """Sums the gradients of experts over the ranks that have the same experts, all others over all that read samples.

    The tokens of the ranks along "ep" have met in the experts already: the gradient of an expert there is the sum.

    Parameters
        parameters  of the chunk; those that this rank does not hold are skipped
        of_experts  the experts' parameters
        mesh        of the run's plan
        the others  as for `GradientBuckets`
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        of_experts: Collection[Parameter],
        mesh: Mesh[Communicator],
        bucket_mb: float,
        algorithm: AllReduceAlgorithm,
        overlap: bool,
    ) -> None:
        held = [parameter for parameter in parameters if parameter.held]
        shared, own = ([p for p in held if (p in of_experts) == is_own] for is_own in (False, True))
        # Communicators of its own: several sums may be under way
        everyone, replicas = (mesh[axes].split(0) for axes in (READERS, ("dp",)))
        assert everyone is not None
        assert replicas is not None
        super().__init__(shared, everyone, bucket_mb, algorithm, overlap)
        self._of_experts = GradientBuckets(own, replicas, bucket_mb, algorithm, overlap)

    def begin(self) -> None:
        super().begin()
        self._of_experts.begin()

    def end(self) -> None:
        super().end()
        self._of_experts.end()

    def finish(self) -> None:
        super().finish()
        self._of_experts.finish()
