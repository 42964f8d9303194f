"""The app in a browser: textual-serve's protocol and terminal page, with our own access control. A tab is a process.

Only `inspector serve` imports these modules; the process of a tab loads only `tab_driver`, with Textual.
"""
