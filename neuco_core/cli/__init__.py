"""The command line. One module per group of commands, imported when its command is asked for."""
