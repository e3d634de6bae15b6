"""Turn capture files of LLM-agent rollouts into training data that can be trusted."""

__version__ = "0.1.0"
