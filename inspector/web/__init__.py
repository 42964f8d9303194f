"""The app in a browser: textual-serve's protocol and page, our access control, and a process for each tab."""
