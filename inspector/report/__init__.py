"""Reports: one view model (`facts`), rendered as text, as JSON and by the screens."""
