#include "counter.h"

int counter = 0;

void count_up(void) {
    counter++;
}
