import sys

from orders import place

if __name__ == "__main__":
    print(place(sys.argv[1], int(sys.argv[2])))
