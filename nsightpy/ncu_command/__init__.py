"""From a plan to what is typed: ncu's arguments, shell lines, batch scripts."""
