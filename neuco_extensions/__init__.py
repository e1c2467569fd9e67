"""Uses of the core: each directory here is an extension, attached only by the hooks that anybody's plugin has.

A folder ``neuco_extensions`` elsewhere on the Python path, without an ``__init__.py``, adds its directories to these.
"""

from neuco_core.plugins.discovery import extended

__path__ = extended(__path__, __name__)
