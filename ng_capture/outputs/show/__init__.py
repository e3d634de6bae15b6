"""What a rollout looks like: a line in a list, a flat tree of calls, a conversation, its tokens."""
