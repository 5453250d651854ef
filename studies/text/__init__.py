"""Programs compared on real text: chapter 14 and the appendix on text show what came out."""
