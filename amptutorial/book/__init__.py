"""What the pages of the book need: a style for figures, experiments with sliders."""
