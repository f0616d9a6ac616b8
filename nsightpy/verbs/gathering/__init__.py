"""What the verbs stand on: facts of one report, gathered in one go."""
