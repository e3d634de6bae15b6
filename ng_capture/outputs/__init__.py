"""What is written: reports, rebuilt responses, training rows, receipts."""
