"""Golden commands: what a user's commands print, record, draw and leave, compared with files."""
