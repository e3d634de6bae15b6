"""Rows of text for SFT and DPO: the conversations of trained chains as their raw calls hold them."""
