"""Finished rows of NeMo Gym: a request, its response with every item, a reward, and what the environment adds."""
