"""Methods: each directory here is a plugin, found without being named anywhere else.

A folder ``neuco_methods`` elsewhere on the Python path, without an ``__init__.py``, adds its directories to these.
"""

from neuco_core.plugins.discovery import extended

__path__ = extended(__path__, __name__)
