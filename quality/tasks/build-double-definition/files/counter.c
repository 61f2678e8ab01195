#include "counter.h"

void count_up(void) {
    counter++;
}
