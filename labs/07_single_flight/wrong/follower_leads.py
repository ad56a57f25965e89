"""A follower that is aborted releases the others, as if it had led."""

KILLED_BY = "a lost follower touches nobody"


class MyCoordinator(MyCoordinator):
    def leave(self, request_id, flight, is_leader):
        super().leave(request_id, flight, is_leader)
        return flight[:1] if is_leader else flight[1:]
