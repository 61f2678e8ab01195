#ifndef COUNTER_H
#define COUNTER_H

extern int counter;

void count_up(void);

#endif
