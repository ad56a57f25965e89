"""After the release the flight stays open until its leader ends, so whoever comes then waits for nothing."""

KILLED_BY = "after a release a new flight begins"


class MyCoordinator(MyCoordinator):
    def __init__(self, release_after_prefill):
        super().__init__(release_after_prefill)
        self.running_leaders = {}

    def arrive(self, request):
        key = (request.cache_salt, tuple(request.prompt_token_ids))
        if key in self.running_leaders.values():
            self.released.add(request.request_id)
            return False
        return super().arrive(request)

    def prompt_computed(self, request):
        followers = super().prompt_computed(request)
        if followers:
            self.running_leaders[request.request_id] = (request.cache_salt, tuple(request.prompt_token_ids))
        return followers

    def ended(self, request_id, completed):
        self.running_leaders.pop(request_id, None)
        return super().ended(request_id, completed)
