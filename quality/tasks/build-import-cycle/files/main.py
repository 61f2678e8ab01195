from shapes import describe

print(describe("circle", 2))
