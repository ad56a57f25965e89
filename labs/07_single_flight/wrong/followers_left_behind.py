"""A lost leader takes its flight along, and the followers wait for ever."""

KILLED_BY = "a lost leader hands over to one"


class MyCoordinator(MyCoordinator):
    def leave(self, request_id, flight, is_leader):
        super().leave(request_id, flight, is_leader)
        return []
