#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static long last_above(const int *values, size_t count, int limit) {
    for (size_t i = count - 1; i >= 0; i--) {
        if (values[i] > limit) {
            return (long)i;
        }
    }
    return -1;
}

int main(int count, char **words) {
    int values[64];
    size_t used = 0;
    for (int i = 1; i < count && used < 64; i++) {
        values[used++] = atoi(words[i]);
    }
    printf("%ld\n", last_above(values, used, 10));
    return 0;
}
