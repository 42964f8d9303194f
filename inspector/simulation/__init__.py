"""What another budget would have made of a recorded answer: its output laid out over tokens, and cut again."""
