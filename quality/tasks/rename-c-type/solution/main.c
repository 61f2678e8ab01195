#include <stdio.h>

#include "point.h"

int main(void) {
    struct point opt = {1, 2}, dpt = {10, 20};
    struct point sum = point_add(opt, dpt);
    printf("%d %d\n", sum.x, sum.y);
    return 0;
}
