"""Reports: one view model (`facts`), which the text report, the JSON document and the screens render."""
