"""The key of a flight is the tokens without the salt: tenants wait for each other, and learn what others ask."""

KILLED_BY = "salts and prompts never meet"


class MyCoordinator(MyCoordinator):
    def arrive(self, request):
        key = tuple(request.prompt_token_ids)
        flight = self.flight_of_key.setdefault(key, [])
        flight.append(request.request_id)
        self.key_of_id[request.request_id] = key
        return len(flight) == 1
