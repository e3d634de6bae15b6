"""Why a verdict: the findings, where each prefix breaks, the likely cause, what it costs."""
