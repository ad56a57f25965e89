"""A page that is used again goes back to the request it first belonged to, while that one has other pages left."""

KILLED_BY = "a shared head outlives its tails"


class MyEviction(MyEviction):
    def __init__(self):
        self.batches = {}
        self.batch_of_page = {}
        self.last_depth = 0
        self.number = 0

    def add(self, page_id, use):
        self.number += use.depth >= self.last_depth
        self.last_depth = use.depth
        old = self.batch_of_page.get(page_id)
        number = old if old is not None and self.batches.get(old) else self.number
        self.batch_of_page[page_id] = number
        self.batches.setdefault(number, []).append(page_id)

    def remove(self, page_id):
        self.batches[self.batch_of_page[page_id]].remove(page_id)

    def pop_victim(self):
        number = min(number for number, pages in self.batches.items() if pages)
        return self.batches[number].pop(0)

    def __len__(self):
        return sum(map(len, self.batches.values()))
