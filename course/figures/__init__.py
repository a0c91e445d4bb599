"""Picture-makers of the lectures: what they draw comes from runs, a file each."""
