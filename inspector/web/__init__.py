"""The app in a browser: textual-serve's protocol and terminal page, with our own access control. A tab is a process.

Only `inspector serve` imports anything here; `driver` alone is loaded in the process of a tab, with Textual.
"""
