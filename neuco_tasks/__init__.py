"""Datasets and tasks: each directory here is a plugin, found without being named anywhere else.

A folder ``neuco_tasks`` elsewhere on the Python path adds its directories to these, so that a task can be
tried from anywhere: ``PYTHONPATH=my_folder neuco tasks``.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
