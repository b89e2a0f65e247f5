"""A command whose library is not there."""

import no_such_library

command = no_such_library
