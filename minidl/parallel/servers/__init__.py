"""Strategies around an authoritative copy of the weights: workers push gradients and fetch weights.

Strategies: `parameter_server.py` with its variants, `backup_workers.py`, `eager_sgd.py`, `hogwild.py`. They stand on

    server_loop           the loop of every server: requests and answers, clients that leave or fail, a lock
    keys                  which weights lie on which server, and which of them a rank holds
    worker                a worker's requests; a worker is a replica of the model on one rank or several
    replicas              the base of strategies whose workers may be split, as their setting `replica` says
    requests              the same at the server: the requests of a worker's ranks become one
    store                 a key-value store of arrays, divided among servers; `vectors` is what one of them computes
    quorum                an update that waits for some of the workers, counted by a server
    partial_all_reduce    the same without a server
"""
