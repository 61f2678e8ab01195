import os
import sys

from settings import port_of

if __name__ == "__main__":
    print("listening on", port_of(sys.argv[1:], os.environ))
