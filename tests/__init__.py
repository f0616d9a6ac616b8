"""Tests lie as the packages do; what several of them use is in support/."""
