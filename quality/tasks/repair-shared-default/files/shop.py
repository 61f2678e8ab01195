from cart import Cart

carts = {}


def cart_of(customer):
    if customer not in carts:
        carts[customer] = Cart()
    return carts[customer]
