struct pt {
    int x, y;
};

struct pt pt_add(struct pt a, struct pt b);
