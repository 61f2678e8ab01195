#include "trim.h"

char *trim(char *text) {
    return text;
}
