"""Operators of a framework: host time, the device time they launched, FLOP by shapes."""
