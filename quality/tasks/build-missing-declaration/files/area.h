#ifndef AREA_H
#define AREA_H

#endif
