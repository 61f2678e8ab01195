#ifndef AREA_H
#define AREA_H

int area(int width, int height);

#endif
