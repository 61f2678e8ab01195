from hooks import hook


@hook(20)
def login(request):
    request.append("login")


@hook(5)
def limit(request):
    request.append("limit")
