#include "trim.h"

#include <string.h>

char *trim(char *text) {
    size_t start = strspn(text, " \t\n");
    size_t end = strlen(text);
    while (end > start && strchr(" \t\n", text[end - 1])) {
        end--;
    }
    memmove(text, text + start, end - start);
    text[end - start] = 0;
    return text;
}
