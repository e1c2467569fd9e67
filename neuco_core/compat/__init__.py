"""Drop-ins for the commands of other projects."""
