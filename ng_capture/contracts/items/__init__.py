"""The items of Responses: read into thoughts, words, calls and results, put together into turns, and written back."""
