"""GEO-Bench-2 submissions: read and checked, scored with error bars, kept in the registry, and written again.

Nothing here ranks or needs pandas: boards are made by ``neuco_core.boards.kinds.capabilities``.
"""
