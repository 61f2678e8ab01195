struct point {
    int x, y;
};

struct point point_add(struct point a, struct point b);
