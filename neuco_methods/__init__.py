"""Methods: each directory here is a plugin, found without being named anywhere else.

A folder ``neuco_methods`` elsewhere on the Python path adds its directories to these.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
