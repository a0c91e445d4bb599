"""A swarm of training runs: each is drawn at random, with faults, and checked for what must hold in every run.

    choices.py      the choices of a run and how they are drawn
    building.py     job, strategy, cluster and faults from these choices
    invariants.py   what must hold
    shrinking.py    the smallest choices that still break an invariant

Every run is simulated, so that a number replays it to the event: `python -m benchmarks.swarm --seed S --run K`.

References
    Groce, Zhang, Eide, Chen and Regehr, Swarm testing (ISSTA 2012): runs that leave out many features find more; Zhou
    et al., FoundationDB (SIGMOD 2021), section 4, for simulation with injected faults; Zeller and Hildebrandt,
    Simplifying and isolating failure-inducing input (IEEE TSE 28, 2002).
"""
