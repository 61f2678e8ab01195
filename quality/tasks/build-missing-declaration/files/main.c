#include <stdio.h>

#include "area.h"

/* Prints the area of 3 by 4: 12. */
int main(void) {
    printf("%d\n", area(3, 4));
    return 0;
}
