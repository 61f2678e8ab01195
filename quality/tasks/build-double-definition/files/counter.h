#ifndef COUNTER_H
#define COUNTER_H

int counter = 0;

void count_up(void);

#endif
