"""What the engines of real ranks share: each rank is a process of the operating system."""
