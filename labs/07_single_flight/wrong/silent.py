"""The patch of the README: an unknown id passes in silence."""

KILLED_BY = "unknown ids raise"


class MyCoordinator(MyCoordinator):
    def ended(self, request_id, completed):
        if request_id not in self.released and request_id not in self.key_of_id:
            return []
        return super().ended(request_id, completed)
