"""A lost leader releases everybody, and they all compute the same prompt."""

KILLED_BY = "a lost leader hands over to one"


class MyCoordinator(MyCoordinator):
    def ended(self, request_id, completed):
        if request_id in self.key_of_id and self.flight_of_key[self.key_of_id[request_id]][0] == request_id:
            return super().ended(request_id, True)
        return super().ended(request_id, completed)
