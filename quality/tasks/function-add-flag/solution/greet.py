"""Greets somebody."""

import argparse


def main():
    parser = argparse.ArgumentParser(description="Greets somebody.")
    parser.add_argument("name")
    parser.add_argument("--shout", action="store_true", help="print it in capitals")
    arguments = parser.parse_args()
    greeting = f"Hello, {arguments.name}!"
    print(greeting.upper() if arguments.shout else greeting)


if __name__ == "__main__":
    main()
