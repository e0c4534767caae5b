"""Options; see the files beside this one."""
