#include "initials.h"

void initials(char *out, int count, char **words) {
    int used = 0;
    for (int i = 0; i < count && used < INITIALS_MAX - 1; i++) {
        if (words[i][0] != 0) {
            out[used++] = words[i][0];
        }
    }
    out[used] = 0;
}
