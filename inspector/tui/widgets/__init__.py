"""One module a widget; each draws lines and sends messages, none holds more than its cursor and scroll."""
