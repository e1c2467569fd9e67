#!/bin/sh
# The old name of parts.sh.
exec sh "$(dirname "$0")/parts.sh"
