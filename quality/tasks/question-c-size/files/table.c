#include "table.h"

static int values[PAGE * PAGES];
static int used = RESERVED;

int table_add(int value) {
    if (used >= PAGE * PAGES - 1) {
        return -1;
    }
    values[used++] = value;
    return used - RESERVED;
}
