/* Removes spaces, tabs and line feeds at both ends, in place. Returns `text`. */
char *trim(char *text);
