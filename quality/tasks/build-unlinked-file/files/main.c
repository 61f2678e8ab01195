#include <stdio.h>

#include "sum.h"

/* Prints the sum of 2 and 5: 7. */
int main(void) {
    printf("%d\n", sum(2, 5));
    return 0;
}
