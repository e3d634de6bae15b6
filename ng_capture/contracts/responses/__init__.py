"""OpenAI Responses as documents: a request, a response, both, or a list of items."""
