#include "point.h"

struct point point_add(struct point a, struct point b) {
    struct point sum = {a.x + b.x, a.y + b.y};
    return sum;
}
