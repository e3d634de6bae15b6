"""An exported file held against the captures it was made of."""
