#include <stdio.h>

#include "counter.h"

/* Prints 2. */
int main(void) {
    printf("%d\n", (count_up(), count_up(), counter));
    return 0;
}
