# The port of version 1.
OLD_PORT = 7070
