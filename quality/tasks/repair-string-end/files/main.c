#include <stdio.h>

#include "initials.h"

int main(int count, char **words) {
    char out[INITIALS_MAX];
    initials(out, count - 1, words + 1);
    puts(out);
    return 0;
}
