"""Strategies in which every node trains a model of its own, and models are averaged.

local_sgd             average all models after every few steps; its variants PostLocalSGD, SlowMo, DiLoCo
one_shot_averaging    average all models once, at the end
elastic_averaging     EASGD: an elastic force ties every model to a common centre
gossip                average with neighbours, by the matrices of mixing; pairwise_averaging does so asynchronously
ensemble              average the models' predictions
"""
