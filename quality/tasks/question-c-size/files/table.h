#define PAGE 16
#define PAGES 4
#define RESERVED 2

int table_add(int value);
