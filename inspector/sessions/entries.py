"""The names of the parts of a file, which are not taken for turns or responses."""


def entry_word(format_name: str, many: bool = False) -> str:
    """The name for the parts of a file, used so that their numbers are not taken for those of turns."""
    word = "HAR entr" if format_name == "har" else "entr"
    return f"{word}ies" if many else f"{word}y"


def entry_name(format_name: str, index: int) -> str:
    """The name of a part of a file, counted from 1 like turns, steps and lines: `HAR entry 3`. Documents for programs
    have the index instead."""
    return f"{entry_word(format_name)} {index + 1:,}"
