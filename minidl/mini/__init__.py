"""The core, to be read in this order: tensor, nn, cluster, collectives, data_parallel, model_parallel, __main__."""
