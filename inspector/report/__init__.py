"""Reports: one view model (`facts`), rendered as text, as a JSON document and by the screens."""
