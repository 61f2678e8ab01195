#define INITIALS_MAX 8

/* Writes the first letters of the words, ended by a zero byte. `out` holds INITIALS_MAX bytes. */
void initials(char *out, int count, char **words);
