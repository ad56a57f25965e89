"""A leader that is aborted after its prompt counts as completed, because the prompt has been computed."""

KILLED_BY = "every interleaving of three"


class MyCoordinator(MyCoordinator):
    def __init__(self, release_after_prefill):
        super().__init__(release_after_prefill)
        self.computed = set()

    def prompt_computed(self, request):
        self.computed.add(request.request_id)
        return super().prompt_computed(request)

    def ended(self, request_id, completed):
        has_prompt = request_id in self.computed
        self.computed.discard(request_id)
        return super().ended(request_id, completed or has_prompt)
