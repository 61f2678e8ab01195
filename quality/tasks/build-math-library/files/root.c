#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints the cube root of its argument with two digits. */
int main(int count, char **words) {
    printf("%.2f\n", cbrt(count > 1 ? atof(words[1]) : 0));
    return 0;
}
