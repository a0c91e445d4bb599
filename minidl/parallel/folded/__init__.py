"""The time of one training step of a pipeline on many ranks, from shapes: ranks that behave alike are played once.

simulated_step      the step of a job by a strategy on a simulated cluster: seconds by activity, bytes by axis
folding             which axes of the mesh have ranks that behave alike
links               the links of racks as the ranks that are played see them
stage_program       what one rank does in a step: computation, collectives, messages
charges             what each action computes and sends, recorded once
collective_rounds   the messages of a rank in a collective, by the rounds of `cluster.collectives`
clock               a virtual clock for ranks that send sizes, with the ports and links of the simulation
"""
