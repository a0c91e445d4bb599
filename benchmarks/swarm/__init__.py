"""A swarm of simulated training runs, drawn at random, with faults, and checked for what must hold in every run.

    choices.py      the choices of a run and how they are drawn
    building.py     job, strategy, cluster and faults from these choices
    invariants.py   what must hold

References
    Groce et al., Swarm testing (ISSTA 2012), for runs that leave out many features; Zhou et al., FoundationDB (SIGMOD
    2021), section 4, for simulation with injected faults; Zeller and Hildebrandt (IEEE TSE 28, 2002), for shrinking.
"""
