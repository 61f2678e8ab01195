#include "point.h"

struct pt pt_add(struct pt a, struct pt b) {
    struct pt sum = {a.x + b.x, a.y + b.y};
    return sum;
}
