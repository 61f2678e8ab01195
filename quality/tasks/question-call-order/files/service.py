from hooks import HOOKS, hook
import security


@hook(90)
def audit(request):
    request.append("audit")


@hook(10 * 3)
def cache(request):
    request.append("cache")


def handle(request):
    for _, function in sorted(HOOKS, key=lambda item: item[0]):
        function(request)
