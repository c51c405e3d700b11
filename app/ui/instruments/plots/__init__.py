"""The plots of an answer: their canvas, their cards, and what stands below them."""
