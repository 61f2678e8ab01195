"""Greets somebody."""

import argparse


def main():
    parser = argparse.ArgumentParser(description="Greets somebody.")
    parser.add_argument("name")
    arguments = parser.parse_args()
    print(f"Hello, {arguments.name}!")


if __name__ == "__main__":
    main()
