"""Real data that is always there, and minibatches of it for one rank or many."""
